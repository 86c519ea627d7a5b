"""A target's metrics go through the spool; one that fails is said and counted, and delays no other."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from collectors import decode, scrape
from collectors.door import Door
from collectors.ledger import Note
from collectors.scrape import Scraper, Target
from collectors.spool import Spool
from collectors.spool_records import Position, Record

NOW = 1_700_000_000_000_000_000
ALL = 1 << 40
TEXT = b"# TYPE a gauge\na 1\n"
TARGET = Target("http://10.0.0.5:8000/metrics", replica="pod-1", labels={"leverwatch.hardware": "h100"})
Answer = Callable[[httpx.Request], Any]


def answered(content: bytes, status_code: int = 200, headers: dict[str, str] | None = None) -> httpx.Response:
    """An answer as it comes over the wire: nothing of it is read yet."""
    return httpx.Response(status_code, headers=headers, stream=httpx.ByteStream(content))


class Yard:
    """A door with a spool behind it, and a scraper in front whose targets answer as a function says."""

    def __init__(self, folder: Path, limit_backlog_bytes: int = ALL) -> None:
        self.noted: list[Note] = []
        self.spool = Spool(folder, Position(0, 0), limit_backlog_bytes=limit_backlog_bytes)
        self.door = Door(self.spool, lambda: NOW, self.noted.append, decode.check)

    def scraper(self, answer: Answer, *targets: Target, **more: Any) -> Scraper:
        return Scraper(targets, self.door, httpx.MockTransport(answer), **more)

    def once(self, answer: Answer, target: Target = TARGET) -> Scraper:
        scraper = self.scraper(answer, target)
        asyncio.run(scraper.scrape(target))
        return scraper

    def stored(self) -> list[Record]:
        return list(self.spool.read(Position(0, 0), ALL))


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    made = Yard(tmp_path)
    yield made
    made.spool.close()


def test_a_scrape_is_one_durable_record_with_what_the_target_is(yard: Yard) -> None:
    scraper = yard.once(lambda _: answered(TEXT, headers={"content-type": "text/plain"}))
    found = yard.stored()
    assert [(record.signal, record.sender, record.received_unix_nano) for record in found] == [
        ("scrapes", "scrape:10.0.0.5:8000/metrics", NOW)
    ]
    head, _, text = found[0].body.partition(b"\n")
    assert text == TEXT
    assert b'"instance":"10.0.0.5:8000"' in head
    assert b'"replica":"pod-1"' in head
    assert scraper.warnings == {}


def test_a_gzip_answer_is_stored_inflated(yard: Yard) -> None:
    yard.once(lambda _: answered(gzip.compress(TEXT), headers={"content-encoding": "gzip"}))
    assert yard.stored()[0].body.endswith(b"\n" + TEXT)


def test_a_scrape_of_more_samples_than_its_target_may_show_is_said_with_the_key_to_raise(yard: Yard) -> None:
    text = b"# HELP a b\n# TYPE a gauge\n" + b"".join(b'a{n="%d"} 1\n' % n for n in range(4)) + b"\n# TYPE b gauge\r\nb 1\n# EOF\n"
    target = msgspec.structs.replace(TARGET, limit_samples=4)
    scraper = yard.once(lambda _: answered(text), target)
    told = "shows 5 samples, more than limit_samples = 4; show fewer, or raise it"
    assert scraper.warnings == {"scrape:10.0.0.5:8000/metrics": told}
    assert [note.reason for note in yard.noted] == [f"not scraped: {told}"]
    assert yard.stored() == []
    assert yard.once(lambda _: answered(text), msgspec.structs.replace(TARGET, limit_samples=5)).warnings == {}
    assert len(yard.stored()) == 1


def test_a_target_may_show_50_000_samples_where_nothing_is_said_and_never_none() -> None:
    assert Target("http://a/metrics").limit_samples == 50_000
    with pytest.raises(ValueError, match="limit_samples = 0: 1 or more is taken"):
        Target("http://a/metrics", limit_samples=0)


def test_a_token_is_read_anew_at_each_scrape(yard: Yard, tmp_path: Path) -> None:
    shown: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        shown.append(request.headers["authorization"])
        return answered(TEXT)

    token = tmp_path / "token"
    for said in ("one\n", "two"):
        token.write_text(said)
        yard.once(answer, Target("http://h/metrics", bearer_token_file=str(token)))
    assert shown == ["Bearer one", "Bearer two"]


def refused(_: httpx.Request) -> httpx.Response:
    msg = "connection refused"
    raise httpx.ConnectError(msg)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda _: answered(b"", 503), "answered 503"),
        (lambda _: answered(b"", 302, headers={"location": "http://elsewhere/"}), "answered 302"),
        (refused, "ConnectError: connection refused"),
        (lambda _: answered(bytes(1001)), "the body is larger than 1,000 bytes"),
        (
            lambda _: answered(gzip.compress(bytes(10_000_000)), headers={"content-encoding": "gzip"}),
            "the body is larger than 1,000 bytes",
        ),
        (lambda _: answered(TEXT, headers={"content-encoding": "br"}), "content-encoding 'br'"),
    ],
)
def test_a_target_that_fails_is_said_and_counted_and_no_longer_once_it_answers(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, answer: Answer, told: str
) -> None:
    monkeypatch.setattr(scrape, "LIMIT_RESPONSE_BYTES", 1000)
    is_well: list[bool] = []
    scraper = yard.once(lambda request: answered(TEXT) if is_well else answer(request))
    assert [told in said for said in scraper.warnings.values()] == [True]
    assert [(note.sender, note.signal, told in note.reason, note.is_dropped) for note in yard.noted] == [
        (TARGET.sender, "scrapes", True, False)
    ]
    is_well.append(True)
    asyncio.run(scraper.scrape(TARGET))
    assert (scraper.warnings, len(yard.stored())) == ({}, 1)


def test_a_full_spool_is_a_failure_of_the_scrape(tmp_path: Path) -> None:
    yard = Yard(tmp_path, limit_backlog_bytes=10)
    scraper = yard.once(lambda _: answered(TEXT))
    assert ["wait to be loaded" in said for said in scraper.warnings.values()] == [True]
    yard.spool.close()


def test_a_token_file_that_is_gone_is_a_failure_of_the_scrape(yard: Yard, tmp_path: Path) -> None:
    scraper = yard.once(lambda _: answered(TEXT), Target("http://h/metrics", bearer_token_file=str(tmp_path / "none")))
    assert ["FileNotFoundError" in said for said in scraper.warnings.values()] == [True]


def test_a_target_that_hangs_delays_no_other_and_stopping_waits_for_none(yard: Yard) -> None:
    hanging, sound = Target("http://hangs/metrics"), Target("http://sound/metrics")

    async def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "hangs":
            await asyncio.Event().wait()
        return answered(TEXT)

    async def both() -> None:
        scraper = yard.scraper(answer, hanging, sound, sleep=lambda _: asyncio.sleep(0))
        scraper.start()
        async with asyncio.timeout(20):
            while len(yard.stored()) < 3:
                await asyncio.sleep(0.005)
            await scraper.stop()

    asyncio.run(both())
    assert {record.sender for record in yard.stored()} == {sound.sender}


def test_a_target_that_does_not_answer_in_time_is_said(yard: Yard) -> None:
    async def answer(_: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    target = Target("http://hangs/metrics", timeout_s=0.01)
    assert yard.once(answer, target).warnings == {target.sender: "did not answer within 0.01 s"}


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"url": "10.0.0.5:8000/metrics"}, "an address such as http://10.0.0.5:8000/metrics is taken"),
        ({"url": "ftp://h/metrics"}, "an address such as"),
        ({"url": "http://me:secret@h/metrics"}, "a name or password in it is not taken"),
        ({"url": "http://h/", "interval_s": 0.5}, "h:80: interval_s = 0.5: 1.0 or more is taken"),
        ({"url": "https://h/", "timeout_s": 20.0}, "h:443: timeout_s = 20.0: more than 0, at most interval_s"),
        ({"url": "http://h/", "replica": "a", "replica_from": "pod"}, "replica or replica_from, not both"),
    ],
)
def test_a_target_that_cannot_be_used_is_refused_with_why(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=r"\[\[scrape\]\]") as caught:
        Target(**fields)
    assert told in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(("kind", "content"), [("text/html; charset=utf-8", TEXT), ("application/json", b"{}"), ("", b"\n<!doctype html>")])
def test_a_page_in_place_of_metrics_is_a_failed_target(yard: Yard, kind: str, content: bytes) -> None:
    scraper = yard.once(lambda _: answered(content, headers={"content-type": kind}))
    assert "not with the text of metrics; is the path right?" in scraper.warnings[TARGET.sender]
    assert (len(yard.noted), yard.stored()) == (1, [])


@pytest.mark.parametrize(("set_to", "limit_s"), [({}, 10.0), ({"interval_s": 2.0}, 2.0), ({"interval_s": 60.0, "timeout_s": 30.0}, 30.0)])
def test_a_scrape_may_take_ten_seconds_or_the_shorter_interval(set_to: dict[str, float], limit_s: float) -> None:
    assert Target("http://h/", **set_to).limit_s == limit_s  # type: ignore[arg-type]
