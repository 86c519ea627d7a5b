"""The investigation of speculation by batch: requests whose batch nobody knows are there of both arms."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from queries import files
from queries.store import Store

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
INSERT = """
insert into requests_hot by name
select 'r' || n as request_id, 't' || n as trace_id, 'm' as model,
    timestamptz '2026-03-04 12:00:00+00' as started_at, started_at as ended_at,
    'ok' as outcome, 1.0 as decode_s, 101 as output_tokens, 0.2 as ttft_s, bucket as batch_bucket, map {'speculation': arm} as arms
from incoming
"""


@pytest.fixture
def found(tmp_path: Path) -> dict[str | None, tuple[int | None, int | None]]:
    store = Store(tmp_path)
    told = [("treated", None, 3), ("control", None, 2), ("treated", "2-3", 4), ("control", "16-31", 5)]
    rows = [{"arm": arm, "bucket": bucket} for arm, bucket, count in told for _ in range(count)]
    with store.write() as transaction:
        transaction.using(pl.DataFrame(rows).with_row_index("n"), INSERT)
    asked = {"since": NOW - timedelta(hours=1), "until": NOW + timedelta(hours=1), "model": None}
    answered = store.rows(files.question("ask_speculation_by_batch"), asked)
    store.close()
    return {row["batch_bucket"]: (row["treated_requests"], row["control_requests"]) for row in answered}


def test_what_has_no_batch_and_what_has_one_arm_alone_stand_in_rows_of_their_own(
    found: dict[str | None, tuple[int | None, int | None]],
) -> None:
    assert found == {None: (3, 2), "2-3": (4, None), "16-31": (None, 5)}
