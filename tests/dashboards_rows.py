"""A small store of made-up rows for the page tests: one segment whose speculation stopped paying six hours ago, and others beside it."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import uvicorn
from fastapi import APIRouter, FastAPI

from alerts.debt import debt
from dashboards.api import router
from dashboards.compared import Compared, Comparison
from dashboards.house import House
from dashboards.security import Headed
from dashboards.studio import Studio
from leverwatch import explaining, lever_budgets, policy_sources
from pipeline import cell_store, measure
from pipeline.metrics import chosen
from pipeline.segments import canonical
from queries.report import report
from queries.sandbox import Sandbox
from queries.store import Store

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
TURNED_AT = NOW - timedelta(hours=6)
HOSTILE = "<script>alert(1)</script>\"'&"
NOTICE = {
    "causal_chain": {
        "measured_bottleneck": {"phase": "decode", "resource": "memory_bandwidth", "metric": "tpot_s", "because": "weights are read"},
        "expected_benefit": {"metric": "net_itl_gain", "minimum_gain": 0.0, "because": "less time per token"},
        "disable_when": [
            {
                "kind": "harm",
                "metric": "net_itl_gain",
                "is": "below",
                "threshold": 0.0,
                "unit": "ratio",
                "for_blocks": 3,
                "source": "a loss",
            },
            {"kind": "failure_mode", "metric": "ttft_s", "is": "above", "relative_to_control": 1.25, "for_blocks": 3, "source": "felt"},
        ],
    },
    "rollback": {"steps": ["Drain one replica.", f"Restart it without {HOSTILE}."]},
    "commands": [{"engine": "vllm", "text": "restart without --speculative-config"}],
    "query": {"sql": "select count(*) from requests where model = $model", "params": {"model": "llama-3.3-70b"}},
}


@dataclass(frozen=True)
class Fleet:
    """One segment's traffic: gain of speculation before and after the turn, and what it lacks."""

    model: str
    hardware: str
    topology: str
    input_bucket: str
    temperature_bucket: str | None
    per_hour: int
    itl_s: float
    gains: tuple[float, float]
    verdict: str | None
    has_control: bool = True
    has_drafts: bool = True
    has_transfer: bool = False

    @property
    def keys(self) -> dict[str, str | None]:
        """The judging keys."""
        names = ("model", "hardware", "topology", "input_bucket", "temperature_bucket")
        return {name: getattr(self, name) for name in names}


FLEETS = (
    Fleet("llama-3.3-70b", "h100", "tp8", "<512", "<0.3", 70, 0.021, (0.27, 0.25), "keep"),
    Fleet("llama-3.3-70b", "h100", "tp8", "512-2047", "0.8-1.2", 60, 0.024, (0.18, -0.15), "disable"),
    Fleet("qwen3-32b", "h200", "tp4", "2048-8191", "0.3-0.8", 40, 0.017, (0.05, 0.03), "insufficient", has_control=False, has_drafts=False),
    Fleet("mixtral-8x22b", "h100", "pd-1p2d", "8192-32767", "0.8-1.2", 30, 0.031, (0.09, 0.08), "frozen", has_transfer=True),
    Fleet(HOSTILE, "h100", "tp8", ">=32768", None, 4, 0.04, (0.1, 0.1), None),
)


@contextmanager
def filled(folder: Path) -> Iterator[Store]:
    """A store in a folder with the rows of the 24 hours before NOW."""
    store = Store(folder)
    try:
        fill(store)
        yield store
    finally:
        store.close()


def fill(store: Store) -> None:
    """Writes the rows of the 24 hours before NOW."""
    rows = [row for number, fleet in enumerate(FLEETS) for row in _requests(fleet, random.Random(number))]
    with store.write() as transaction:
        transaction.insert("requests_hot", pl.DataFrame(_requests_table(transaction.frame("from requests_hot"), rows)))
        transaction.execute(
            "insert into spans_hot by name select trace_id, 'a' || row_number() over () as span_id, 'llm_request' as name, "
            "'server' as kind, started_at, ended_at, 0 as start_unix_nano, 1.0 as duration_s, 'ok' as status, 'here' as sender, "
            "map {} as resource, map {} as attributes, [] as events, [] as links, ended_at as received_at from requests_hot"
        )
        transaction.execute("insert into watermarks values ('here', $at, $at)", {"at": NOW - timedelta(seconds=4)})
        cell_store.add(transaction, measure.cells(transaction.frame("from requests")))
        transaction.insert("effects", pl.DataFrame([row for fleet in FLEETS for row in _effects(fleet)], infer_schema_length=None))
        transaction.insert("current_verdicts", pl.DataFrame([_verdict(fleet) for fleet in FLEETS if fleet.verdict]))
        _flips(transaction)


def _requests(fleet: Fleet, chance: random.Random) -> list[dict[str, Any]]:
    rows = []
    count = fleet.per_hour * 24
    for number in range(count):
        started_at = NOW - timedelta(hours=24) + timedelta(seconds=86_390 * number / (count - 1))
        is_control = fleet.has_control and number % 4 == 0
        gain = 0.0 if is_control else fleet.gains[started_at >= TURNED_AT]
        output_tokens, ttft_s = chance.randint(60, 400), 0.18 * chance.lognormvariate(0, 0.35)
        decode_s = fleet.itl_s * (1 - gain) * (output_tokens - 1) * chance.uniform(0.93, 1.07)
        steps = max(1, round(output_tokens / (1.3 if gain < 0 else 2.6)))
        drafts = fleet.has_drafts and not is_control
        rows.append(
            {
                **fleet.keys,
                "request_id": f"r{fleet.model[:5]}{number}",
                "trace_id": f"{number:032x}",
                "engine": "vllm",
                "started_at": started_at,
                "ended_at": started_at + timedelta(seconds=ttft_s + decode_s),
                "outcome": "ok",
                "prompt_tokens": 800,
                "cached_tokens": chance.choice([0, 256, 512]) if fleet.has_drafts else None,
                "output_tokens": output_tokens,
                "decode_s": decode_s,
                "ttft_s": ttft_s,
                "e2e_s": ttft_s + decode_s,
                "draft_tokens": steps * 3 if drafts else None,
                "accepted_tokens": max(0, output_tokens - steps) if drafts else None,
                "verify_steps": steps if drafts else None,
                "kv_transfer_bytes": 2_000_000_000 if fleet.has_transfer else None,
                "kv_transfer_s": 0.07 if fleet.has_transfer else None,
                "link_peak_bytes_per_s": 50e9 if fleet.has_transfer else None,
                "arm": "control" if is_control else "treated" if fleet.has_control else None,
            }
        )
    return rows


def _requests_table(empty: pl.DataFrame, rows: list[dict[str, Any]]) -> pl.DataFrame:
    """The rows with the table's own types; arms and provenance as maps, each made once: a map a row takes half a second."""
    told = ("prompt_tokens", "output_tokens", "decode_s", "ttft_s")
    body = ("cached_tokens", "draft_tokens", "accepted_tokens", "verify_steps")
    arms = [{} if row["arm"] is None else {"speculation": row["arm"]} for row in rows]
    provenance = [dict.fromkeys(told, "span") | {name: "body" for name in body if row[name]} for row in rows]
    names = [name for name in rows[0] if name != "arm"]
    plain = pl.DataFrame([{name: row[name] for name in names} for row in rows], schema={name: empty.schema[name] for name in names})
    return plain.with_columns(_maps("arms", arms, empty), _maps("provenance", provenance, empty))


def _maps(name: str, maps: list[dict[str, str]], empty: pl.DataFrame) -> pl.Series:
    places = {tuple(one.items()): n for n, one in enumerate({tuple(one.items()): one for one in maps}.values())}
    listed = [[{"key": key, "value": value} for key, value in one] for one in places]
    return pl.Series(name, listed, dtype=empty.schema[name]).gather([places[tuple(one.items())] for one in maps])


def _effects(fleet: Fleet) -> list[dict[str, Any]]:
    rows = []
    for number in range(1, 289):
        until = NOW - timedelta(hours=24) + timedelta(minutes=5 * number)
        gain = fleet.gains[until > TURNED_AT] + 0.012 * ((number * 7) % 5 - 2)
        width = 0.72 if number < 20 else 0.05
        rows.append(
            {
                "lever": "speculation",
                "segment": canonical(fleet.keys),
                "metric": "net_itl_s",
                "arm_a": "treated",
                "arm_b": "control" if fleet.has_control else None,
                "since": until - timedelta(hours=3),
                "until": until,
                "blocks": 36,
                "n_a": 3 * fleet.per_hour,
                "n_b": fleet.per_hour if fleet.has_control else 0,
                "value_a": fleet.itl_s * (1 - gain),
                "value_b": fleet.itl_s if fleet.has_control else None,
                "gain": gain if fleet.has_control else None,
                "gain_low": gain - width if fleet.has_control else None,
                "gain_high": gain + width if fleet.has_control else None,
                "method": "avt",
                "basis": "control" if fleet.has_control else "tpot",
                "coverage": 1.0,
                "note": None if fleet.has_control else "no control arm",
            }
        )
    return rows


_REASONS = {
    "keep": "net ITL 15.8 ms against 21 ms in control, gain +25 % (+21..+29 %), 36 blocks",
    "disable": "net ITL 27.6 ms against 24 ms in control, gain -15 % (-20..-10 %), 36 blocks",
    "insufficient": "net ITL not compared with control (no control arm)",
    "frozen": "acceptance length known for 62 % of requests, 90 % are needed",
}


def _verdict(fleet: Fleet) -> dict[str, Any]:
    is_bad = fleet.verdict == "disable"
    return {
        "policy": "speculation",
        "policy_version": "1",
        "lever": "speculation",
        "segment": canonical(fleet.keys),
        "verdict": fleet.verdict,
        "action": "disable" if is_bad else "keep",
        "reason_code": {"keep": "pays", "disable": "harm", "insufficient": "no_control", "frozen": "coverage"}[fleet.verdict or "keep"],
        "reason": _REASONS[fleet.verdict or "keep"],
        "decided_at": NOW - timedelta(minutes=5),
        "block_ended_at": NOW - timedelta(minutes=5),
        "state": "off_recommended" if is_bad else "on",
        "state_since": TURNED_AT + timedelta(minutes=90) if is_bad else NOW - timedelta(hours=24),
        "streak": 3,
    }


def _flips(transaction: Any) -> None:
    flip = ["flip_id", "policy", "lever", "segment", "state_before", "state_after", "decided_at", "reason", "notice"]
    at = TURNED_AT + timedelta(minutes=90)
    bad, good = canonical(FLEETS[1].keys), canonical(FLEETS[0].keys)
    told = json.dumps(NOTICE)
    listed = [
        ("f2", "speculation", "speculation", bad, "on", "off_recommended", at, _REASONS["disable"], told),
        ("f1", "speculation", "speculation", good, "probation", "on", at - timedelta(hours=9), _REASONS["keep"], "{}"),
    ]
    transaction.insert("flips", pl.DataFrame(listed, schema=flip, orient="row"))
    tried = ["delivery_id", "flip_id", "webhook_id", "receiver", "attempt", "started_at", "ended_at"]
    tried += ["status_code", "outcome", "error", "next_attempt_at"]
    kinds = transaction.frame("from deliveries").select(tried).schema
    sent = [
        ("d1", "f2", "w1", "oncall", 1, at, at, 503, "retrying", "service unavailable", at + timedelta(seconds=5)),
        ("d2", "f2", "w1", "oncall", 2, at + timedelta(seconds=5), at + timedelta(seconds=5), 200, "delivered", None, None),
        ("d3", "f2", "w2", "chat", 1, at, at, None, "retrying", "connection refused", at + timedelta(minutes=5)),
    ]
    transaction.insert("deliveries", pl.DataFrame(sent, schema=kinds, orient="row"))


@contextmanager
def serving(sandbox: Sandbox, studio: Studio, house: House | None = None, more: Sequence[APIRouter] = ()) -> Iterator[str]:
    """The address of a server of the pages over the sandbox's store, at NOW; `more` routes beside them."""
    store = sandbox._copies._store
    app = FastAPI(docs_url=None, redoc_url=None)
    for routes in (router(StoreReader(store), sandbox, lambda: NOW, studio, house), *more):
        app.include_router(routes)
    with listening(Headed(app)) as address:
        yield address


@contextmanager
def listening(application: Any) -> Iterator[str]:
    """The address on loopback at which an application answers."""
    server = uvicorn.Server(uvicorn.Config(application, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


class StoreReader:
    """The reader of the pages over a store, with the product's own report."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._columns = store.frame("from requests limit 0").columns

    def frame(self, sql: str, params: Mapping[str, Any] | None = None) -> pl.DataFrame:
        """The rows of a SELECT."""
        return self._store.frame(sql, params)

    def report(
        self,
        *,
        by: Sequence[str] = (),
        metrics: Sequence[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        where: str | None = None,
        source: str = "auto",
    ) -> pl.DataFrame:
        """The report over requests, without `where`: only the sandbox may run that."""
        del source
        if where:
            msg = "where is not taken here"
            raise ValueError(msg)
        question = report(chosen(None if metrics is None else tuple(metrics)), self._columns, tuple(by), since, until)
        return self._store.frame(question.sql, question.params)

    def effects(
        self, lever: str, by: Sequence[str] = (), since: datetime | None = None, until: datetime | None = None, *, total: bool = False
    ) -> pl.DataFrame:
        """The newest effect per segment and metric."""
        del by, since, until, total
        newest = "qualify row_number() over (partition by segment, metric order by until desc) = 1"
        return self._store.frame(f"from effects where lever = $lever {newest} order by segment", {"lever": lever})

    def break_even(self, lever: str, by: Sequence[str] = ()) -> pl.DataFrame:
        """The newest of each segment and key."""
        del by
        return self._store.frame("from break_even where lever = $lever order by segment", {"lever": lever})

    def budgets(self, lever: str, segment: str, until: datetime | None = None) -> list[dict[str, Any]]:
        """The ledgers of the shipped policies."""
        policies = [source.policy for source in policy_sources.sources("")]
        return lever_budgets.budgets(self._store, policies, lever, segment, until)

    def debt(self, since: datetime | None = None, until: datetime | None = None) -> pl.DataFrame:
        """The product's own."""
        return debt(self._store, since, until)

    def compare(self, asked: Comparison, wait_s: float) -> Compared:
        """The product's own, at once, and without a sandbox: the sets of tests are ours."""
        del wait_s
        question = explaining.asked_of(self, asked.a, asked.b, (), asked.since, asked.until, asked.where)
        return Compared(explaining.explained(self, question, (asked.a, asked.b or "the rest"), explaining.EVERY_KEY), asked, NOW)

    @property
    def sandbox(self) -> Any:
        """What runs a statement over the store itself."""
        return self

    def run(self, sql: str, params: Mapping[str, Any], limit_rows: int, *, limit_s: float | None = None) -> Any:
        """The rows of a statement, as something that has a frame."""
        del limit_rows, limit_s
        return SimpleNamespace(frame=lambda: self._store.frame(sql, params))
