"""Notices appended to a file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import alert_letters
import pytest
from alert_letters import NOW, letter

from alerts import channels_file
from alerts.channels import DeliveryError, Sent
from alerts.receivers import Receiver


def send(file: Path, webhook_id: str = "msg_1") -> Sent:
    receiver = Receiver(name="file", kind="file", file=str(file))
    with alert_letters.client() as client:
        return channels_file.send(alert_letters.route(receiver, "", client), [letter(webhook_id=webhook_id)], NOW)


def test_each_notice_is_a_line_with_its_id_and_the_body_of_a_webhook(tmp_path: Path) -> None:
    file = tmp_path / "notices.jsonl"
    assert send(file) == Sent()
    send(file, "msg_2")
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [row.pop("webhook_id") for row in rows] == ["msg_1", "msg_2"]
    assert rows == [json.loads(letter().text)] * 2
    assert file.stat().st_mode & 0o077 == 0


def test_a_line_that_was_cut_off_does_not_swallow_the_next(tmp_path: Path) -> None:
    file = tmp_path / "notices.jsonl"
    file.write_bytes(b'{"webhook_id":"msg_0"')
    send(file)
    cut, whole = file.read_text(encoding="utf-8").splitlines()
    assert cut == '{"webhook_id":"msg_0"'
    assert json.loads(whole)["webhook_id"] == "msg_1"


def test_a_notice_is_on_disk_before_it_counts_as_delivered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, synced, real = tmp_path / "notices.jsonl", list[str](), os.fsync

    def seen(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").resolve().name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", seen)
    send(file)
    assert synced == ["notices.jsonl", tmp_path.name]


def test_a_file_that_cannot_be_written_is_tried_again(tmp_path: Path) -> None:
    with pytest.raises(DeliveryError, match=r"nowhere/notices\.jsonl: No such file") as caught:
        send(tmp_path / "nowhere" / "notices.jsonl")
    assert not caught.value.permanent
