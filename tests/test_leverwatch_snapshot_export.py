"""Snapshots as files that other tools open: everything is in them, sealed parts and hot rows alike, and a README says what."""

from __future__ import annotations

import shutil
from pathlib import Path

import dashboards_rows
import duckdb
import elsewhere_rooms
import polars as pl
import pytest
from dashboards_rows import FLEETS, HOSTILE, NOW

from leverwatch import snapshot_export
from leverwatch.cli.main import main
from queries import sealing
from queries.store import Store

REQUESTS = sum(24 * fleet.per_hour for fleet in FLEETS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder whose older rows are in sealed parts."""
    made = tmp_path_factory.mktemp("data")
    with elsewhere_rooms.opened_empty(made) as room:
        dashboards_rows.fill(room.store)
        for _ in range(3):
            assert sealing.seal_next(room.store, NOW) > 0
        assert room.store.rows("select count(*) as n from requests_hot")[0]["n"] < REQUESTS
    return made


def test_a_parquet_folder_is_read_whole_by_duckdb_polars_and_pandas(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out"
    assert main(["snapshot", str(target), "--data", str(folder), "--format", "parquet"]) == 0
    assert f"{REQUESTS:,} requests, as parquet" in capsys.readouterr().out
    requests = target / "requests.parquet"
    assert duckdb.sql(f"select count(*) from '{requests}'").fetchall() == [(REQUESTS,)]
    frame = pl.read_parquet(requests)
    assert frame.height == REQUESTS
    assert frame.schema["started_at"] == pl.Datetime("us", "UTC")
    assert HOSTILE in frame["model"].to_list()
    assert pl.read_parquet(target / "flips.parquet").height == 2
    assert pl.read_parquet(target / "silences.parquet").is_empty()
    told = (target / "README.md").read_text(encoding="utf-8")
    assert f"| `requests` | {REQUESTS:,} | " in told
    assert "The newest span ended 2026-03-02 11:59:56 UTC." in told
    assert "| `requests.ttft_s` | s |" in told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    assert len(pandas.read_parquet(requests, columns=["model", "started_at", "tpot_s"])) == REQUESTS


def test_a_duckdb_file_has_a_table_per_relation(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    assert main(["snapshot", str(target), "--data", str(folder), "--format", "duckdb"]) == 0
    with duckdb.connect(target / "leverwatch.duckdb", read_only=True) as opened:
        asked = "select count(*), count(*) filter (where arms['speculation'] = 'control') from requests"
        assert opened.sql(asked).fetchall() == [(REQUESTS, sum(6 * fleet.per_hour for fleet in FLEETS if fleet.has_control))]
        assert opened.sql("select count(*) from spans").fetchall() == [(REQUESTS,)]
        assert opened.sql("select count(*) from effects").fetchall() == [(288 * len(FLEETS),)]
    assert sorted(path.name for path in target.iterdir()) == ["README.md", "leverwatch.duckdb"]


def test_an_export_goes_to_no_folder_that_is_there(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["snapshot", str(tmp_path), "--data", str(folder), "--format", "parquet"]) == 2
    assert "is there already" in capsys.readouterr().err


@pytest.mark.parametrize("error", [duckdb.IOException("no space\nleft"), OSError(28, "no space"), shutil.Error([("a", "b", "no space")])])
def test_a_full_disk_is_told_in_a_line_and_nothing_is_left(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def full(_: Store, partial: Path) -> dict[str, int]:
        (partial / "begun.parquet").write_bytes(b"PAR1")
        raise error

    monkeypatch.setitem(snapshot_export.FORMATS, "duckdb", full)
    target = tmp_path / "out"
    assert main(["snapshot", str(target), "--data", str(folder), "--format", "duckdb"]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith(f"leverwatch: {target} cannot be written: ")
    assert last.endswith("no space; nothing of it is left")
    assert list(tmp_path.iterdir()) == []
