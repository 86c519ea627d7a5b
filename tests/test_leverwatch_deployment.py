"""Registry, defaults, links and prices of the configuration reach the rows and tables of a data folder."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from collectors_bodies import attribute, body, span

from leverwatch import deployment
from leverwatch.access_settings import Identity, Link, Price, Registry
from leverwatch.config import Config, ConfigError
from leverwatch.engine_room import EngineRoom
from leverwatch.loading import Here, put_files
from leverwatch.local import Local


def test_facts_reach_requests_and_tables(tmp_path: Path) -> None:
    (tmp_path / "levers.csv").write_text("replica,from_time,until_time,key,value\nr,,,topology,pd-1p2d\n")
    (tmp_path / "key").write_text("a key of sixteen bytes and more\n")
    config = Config(
        registry=Registry(str(tmp_path / "levers.csv")),
        defaults={"hardware": "h200"},
        links=(Link(5e10, "pd-1p2d"),),
        prices=(Price("h200", 3.2, "2026-07-01"), Price("h200", 2.5)),
        identity=Identity(hash=("tenant",), hash_key_file=str(tmp_path / "key"), tenant_from=("team",)),
    )
    room = EngineRoom(tmp_path / "data", config)
    try:
        for _ in range(2):
            deployment.publish(room.store, config)
        now = time.time_ns()
        sent = span(1, start_time_unix_nano=now, end_time_unix_nano=now + 1, attributes=[attribute("team", "blue")])
        room.spool.append("traces", "sender", now, body(sent, service__instance__id="r")).result(10)
        room.drain(20)
        found = room.store.rows("select topology, hardware, link_peak_bytes_per_s, tenant from requests")
        assert found[0].pop("tenant") not in (None, "blue")
        assert found == [{"topology": "pd-1p2d", "hardware": "h200", "link_peak_bytes_per_s": 5e10}]
        assert room.store.frame("select * from links").rows() == [("pd-1p2d", "", 5e10)]
        asked = "select (select count(*) from links), (select count(*) from prices), (select count(*) from lever_settings)"
        assert room.sandbox.run(asked).frame().row(0) == (1, 2, 0)
        assert room.store.frame("select * from prices order by usd_per_gpu_hour").rows() == [
            ("h200", 2.5, None),
            ("h200", 3.2, datetime(2026, 7, 1, tzinfo=UTC)),
        ]
    finally:
        room.close()


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (Config(identity=Identity(hash=("tenant",))), r"\[identity\] hash needs hash_key_file"),
        (Config(identity=Identity(hash=("tenant",), hash_key_file="/nowhere/key")), "hash_key_file /nowhere/key: No such file"),
        (Config(registry=Registry("/nowhere/levers.csv")), "/nowhere/levers.csv: No such file"),
        (Config(prices=(Price("h200", 1.0, "summer"),)), r"\[\[prices\]\] row 1: from_time 'summer'"),
        (Config(defaults={"modle": "x"}), r"\[defaults\] modle: key 'modle' is unknown; did you mean 'model'"),
    ],
)
def test_what_cannot_be_used_is_said_before_a_folder_is_made(tmp_path: Path, config: Config, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        EngineRoom(tmp_path / "data", config)
    assert not (tmp_path / "data").exists()


def test_a_price_from_no_time_is_refused(tmp_path: Path) -> None:
    room = EngineRoom(tmp_path / "data", Config())
    try:
        with pytest.raises(ConfigError, match=r"\[\[prices\]\] row 1: from_time 'summer'"):
            deployment.publish(room.store, msgspec.structs.replace(Config(), prices=(Price("h200", 1.0, "summer"),)))
    finally:
        room.close()


def test_a_folder_that_no_server_holds_is_reported_with_the_prices_of_its_configuration(tmp_path: Path) -> None:
    (tmp_path / "requests.jsonl").write_text(
        '{"request_id":"a","started_at":"2026-01-01T00:00:00Z","hardware":"h200","gpu_s":3600,"output_tokens":1000000}\n'
    )
    for price in (3.0, 5.0):
        (tmp_path / "leverwatch.toml").write_text(f'[[prices]]\nhardware = "h200"\nusd_per_gpu_hour = {price}\n')
        connection = Local.open(tmp_path)
        try:
            list(put_files(way := Here(connection, "s"), [tmp_path / "requests.jsonl"]))
            way.ledger()
            cost = connection.report(metrics="cost_per_million_output_tokens_usd")
            assert cost["cost_per_million_output_tokens_usd"].to_list() == pytest.approx([price])
        finally:
            connection.close()


def test_a_new_data_folder_is_for_its_user_alone(tmp_path: Path) -> None:
    EngineRoom(tmp_path / "data", Config()).close()
    assert (tmp_path / "data").stat().st_mode & 0o077 == 0
