"""Requests that were loaded as such in, rows of `requests` out: what was not stated and follows from the rest is worked out."""

from __future__ import annotations

import polars as pl

from pipeline import segments
from pipeline.impossible import quarantined
from queries import files
from queries.store import Store

ROWS_A_RUN = 60_000


def import_next(store: Store, edges: segments.Edges) -> int:
    """Makes requests of the imported ones that wait; gives how many were taken."""
    if not store.rows("select 1 from imported_requests where not is_taken limit 1"):
        return 0
    with store.write() as transaction:
        transaction.execute(files.question("import_take"), {"limit_rows": ROWS_A_RUN})
        taken = transaction.frame("select columns(* exclude (provenance)), map_entries(provenance) as provenance from working_imports")
        requests, quarantine = finished(taken, edges)
        transaction.using(requests, files.question("import_requests"))
        if not quarantine.is_empty():
            transaction.insert("quarantine", quarantine)
        transaction.execute(
            "update imported_requests set is_taken = true "
            "where (request_id, started_at) in (select (request_id, started_at) from working_imports)"
        )
        return len(requests)


def finished(imported: pl.DataFrame, edges: segments.Edges) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(rows of `requests`, rows of `quarantine`): e2e, decode time, time per token and buckets where they were not stated."""
    e2e_s = (pl.col("ended_at") - pl.col("started_at")).dt.total_microseconds() / 1e6
    requests = imported.with_columns(
        pl.coalesce("e2e_s", pl.when(e2e_s > 0).then(e2e_s)).alias("e2e_s"), pl.col("flags").fill_null(pl.lit([], pl.List(pl.String)))
    )
    requests = requests.with_columns(pl.coalesce("decode_s", pl.col("e2e_s") - pl.col("ttft_s")).alias("decode_s"))
    tpot_s = pl.when(pl.col("output_tokens") >= 2).then(pl.col("decode_s") / (pl.col("output_tokens") - 1))
    requests, taken = quarantined(requests.with_columns(pl.coalesce("tpot_s", tpot_s).alias("tpot_s")))
    buckets = {
        "input_bucket": segments.bucket("prompt_tokens", edges.input_tokens),
        "output_bucket": segments.bucket("output_tokens", edges.output_tokens),
        "batch_bucket": segments.bucket("batch_at_admission", edges.batch),
        "concurrency_bucket": segments.bucket("concurrency", edges.concurrency),
        "temperature_bucket": segments.temperature_bucket("temperature", edges.temperature),
        "cache_class": segments.cache_class(),
    }
    return requests.with_columns(pl.coalesce(name, bucket).alias(name) for name, bucket in buckets.items()), taken
