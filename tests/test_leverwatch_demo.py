"""What the demo promises: spans, the one segment where speculation stops paying, and the webhook it caused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx

PROMISED_S = 120.0


def test_within_two_minutes_a_person_sees_spans_the_segment_and_its_webhook(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "leverwatch.cli.main", "demo", "--port", "0", "--data", str(tmp_path), "--for", str(PROMISED_S)]
    demo = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    ender = threading.Timer(PROMISED_S + 30, demo.terminate)
    ender.start()
    try:
        assert demo.stdout is not None
        lines: list[str] = []
        for line in demo.stdout:
            lines.append(line.rstrip())
            if "net ITL" in line:
                break
        told = "\n".join(lines)
        assert "webhook lever.disable speculation" in told, told
        assert "input_bucket=2048-8191 model=chat-70b" in told, told
        url = next(line.split()[-1] for line in lines if "the page is at" in line)
        verdicts = httpx.get(f"{url}api/verdicts").json()
        disabled = [verdict["segment"] for verdict in verdicts if verdict["verdict"] == "disable"]
        assert [(segment["model"], segment["input_bucket"]) for segment in disabled] == [("chat-70b", "2048-8191")]
        assert [verdict["verdict"] for verdict in verdicts if verdict["lever"] == "speculation"] == ["disable", "keep", "keep"]
        assert {verdict["verdict"] for verdict in verdicts if verdict["lever"] != "speculation"} <= {"insufficient"}
        assert any("speculation, model=chat-70b" in line for line in lines)
        page = httpx.get(url)
        assert page.status_code == 200
        assert "chat-70b" in page.text
        deliveries = httpx.get(f"{url}api/deliveries").json()
        assert [delivery["status_code"] for delivery in deliveries if delivery["outcome"] == "delivered"] == [204]
        ledger = httpx.get(f"{url}api/ledger").json()
        assert sum(row["stored"] for row in ledger) > 200_000
        demo.send_signal(signal.SIGTERM)
        assert demo.wait(60) == 0
    finally:
        ender.cancel()
        if demo.poll() is None:
            demo.terminate()
        demo.communicate(timeout=60)
