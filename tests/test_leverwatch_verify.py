"""`leverwatch verify`: a notice holds, changed, or cannot be checked, each with its reason and exit status."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from judged_history import BLOCK, SEGMENT, T0

from alerts import canonical, sums, wording
from alerts.effects import Effect
from leverwatch.checked_notice import UnreadableNoticeError, notice
from leverwatch.cli.main import main
from leverwatch.connection import Connection
from leverwatch.verifying import Verified, verify
from queries.results import SqlResult
from queries.sandbox import Sandbox
from queries.store import Store

AS_OF = datetime(2026, 3, 4, 6, tzinfo=UTC)
WINDOW = 6
TREATED_S, CONTROL_S = 0.031, 0.025  # per output token
GAIN = 1 - TREATED_S / CONTROL_S


def requests(block: int, arm: str, number: int = 10) -> pl.DataFrame:
    """Requests of a block whose tokens take treated 31 ms and control 25 ms, and whose first token comes after 0.2 s."""
    starts = [T0 + block * BLOCK + timedelta(seconds=n) for n in range(number)]
    return pl.DataFrame(
        {
            "request_id": [f"{arm}-{block}-{n}" for n in range(number)],
            "trace_id": [f"trace-{arm}-{block}-{n}" for n in range(number)],
            "model": "m",
            "hardware": "h100",
            "started_at": starts,
            "ended_at": [start + timedelta(seconds=3) for start in starts],
            "outcome": "ok",
            "output_tokens": 101,
            "decode_s": (TREATED_S if arm == "treated" else CONTROL_S) * 100,
            "ttft_s": 0.2,
            "queue_s": 0.1,
            "e2e_s": 4.0,
            "kv_usage": 0.25 if arm == "treated" else 0.5,
            "arm": arm,
        }
    )


def put(store: Store, rows: pl.DataFrame) -> None:
    text = (
        "insert into requests_hot by name select * exclude (arm), map {'speculation': 'ngram'} as levers,"
        " map {'speculation': arm} as arms, map {'decode_s': 'span'} as provenance from incoming"
    )
    with store.write() as transaction:
        transaction.using(rows, text)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with requests of both arms in each block."""
    path = tmp_path_factory.mktemp("filled")
    store = Store(path)
    for block in range(WINDOW):
        for arm in ("treated", "control"):
            put(store, requests(block, arm))
    store.close()
    return path


@pytest.fixture
def folder(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(filled, tmp_path / "data"))


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    opened = Store(folder)
    yield opened
    opened.close()


class Direct(Connection):
    """Asks the store itself: a child process a statement, as the sandbox takes, would be slow."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def ask(self, sql: str, params: Mapping[str, Any] | None = None, limit_rows: int | None = None) -> Any:
        rows = self.store.frame(sql, params)
        return SimpleNamespace(frame=lambda: rows, truncated=len(rows) > (limit_rows or 10_000))

    def close(self) -> None:
        """The store is the test's own."""


def effect(metric: str = "net_itl_s", gain: float | None = GAIN) -> Effect:
    return Effect(metric, T0, T0 + WINDOW * BLOCK, WINDOW, 60, 60, TREATED_S, CONTROL_S, gain, -0.3, -0.2, "control", 1.0, None)


def said(store: Store, metric: str = "net_itl_s", gain: float | None = GAIN, **changes: Any) -> dict[str, Any]:
    """A notice of the store as it is now, as far as it is checked."""
    one = effect(metric, gain)
    asked = sums.ask(store, "speculation", SEGMENT, one)
    assert asked is not None
    query = {"sql": asked.question.sql, "params": dict(asked.question.params), "as_of": wording.utc(AS_OF)}
    query |= {"columns": list(asked.columns), "result_hash": asked.result_hash}
    values = (TREATED_S, CONTROL_S) if metric == "net_itl_s" else (None, None)
    evidence = [{"metric": metric, "treated": values[0], "control": values[1], "gain": gain, "n_treated": 60, "n_control": 60}]
    told = {
        "flip_id": "f1",
        "action": "disable",
        "lever": "speculation",
        "segment": json.loads(SEGMENT),
        "policy": "p",
        "reason": "why",
        "evidence": evidence,
    }
    return told | {"decided_at": wording.utc(AS_OF), "query": query} | changes


def stored(store: Store, data: dict[str, Any]) -> None:
    """The flip whose notice this is, as judging writes it."""
    row = {"flip_id": data["flip_id"], "policy": "p", "lever": "speculation", "segment": SEGMENT, "state_before": "on"}
    row |= {"state_after": "off_recommended", "decided_at": AS_OF, "reason": "why", "action": "disable", "severity": "warning"}
    with store.write() as transaction:
        transaction.insert("flips", pl.DataFrame([row | {"shadow": False, "notice": canonical.text(data)}]))


def body(data: dict[str, Any], **more: Any) -> str:
    return json.dumps({"type": "lever.disable", "timestamp": wording.utc(AS_OF), "data": data} | more)


def verified(store: Store, data: dict[str, Any]) -> Verified:
    """What is said of a notice that is stored as it is."""
    stored(store, data)
    return verify(notice(body(data), "n.json"), Direct(store))


def test_a_notice_whose_sums_are_the_same_holds_and_its_gain_is_computed_anew(store: Store) -> None:
    found = verified(store, said(store))
    assert (found.outcome, found.reasons) == ("holds", ("the same 12 rows of sums as at 2026-03-04T06:00:00Z",))
    assert found.now is not None
    assert (found.now.gain, found.now.treated, found.now.control) == pytest.approx((GAIN, TREATED_S, CONTROL_S))
    assert (found.now.n_treated, found.now.n_control) == (60, 60)


@pytest.mark.parametrize(("metric", "treated", "control"), [("ttft_s", 0.2, 0.2), ("queue_s", 0.1, 0.1), ("error_rate", 0.0, 0.0)])
def test_other_metrics_are_computed_from_their_sums_in_their_units(store: Store, metric: str, treated: float, control: float) -> None:
    found = verified(store, said(store, metric, None))
    assert (found.outcome, found.metric) == ("holds", metric)
    assert found.now is not None
    assert (found.now.treated, found.now.control) == pytest.approx((treated, control))


@pytest.mark.parametrize(("metric", "treated"), [("kv_usage", 0.25), ("queue_share", 0.025)])
def test_shares_keep_their_digits_in_whole_numbers(store: Store, metric: str, treated: float) -> None:
    found = verified(store, said(store, metric, None))
    assert found.now is not None
    assert found.now.treated == pytest.approx(treated)


@pytest.mark.parametrize(("metric", "value_s"), [("ttft_s_p95", 0.2), ("e2e_s_p95", 4.0)])
def test_a_percentile_is_computed_from_its_bins(store: Store, metric: str, value_s: float) -> None:
    found = verified(store, said(store, metric, None))
    assert (found.outcome, found.metric) == ("holds", metric)
    assert found.now is not None
    assert found.now.treated == pytest.approx(value_s, rel=0.01)
    assert (found.now.n_treated, found.now.n_control) == (60, 60)


def test_a_percentile_counts_blocks_of_both_arms_alone_and_reaches_its_share(store: Store) -> None:
    with store.write() as transaction:
        transaction.execute("update requests_hot set ttft_s = 2.0 where regexp_matches(request_id, '^treated-1-[0-3]$')")
        transaction.execute("delete from requests_hot where request_id like 'control-0-%'")
    found = verified(store, said(store, "ttft_s_p95", None))
    assert found.now is not None
    assert (found.now.n_treated, found.now.n_control) == (50, 50)
    assert found.now.treated == pytest.approx(2.0, rel=0.01)
    assert found.now.gain == pytest.approx(1 - 10, rel=0.04)


def test_a_percentile_that_its_own_bins_do_not_give_is_told(store: Store) -> None:
    found = verified(store, said(store, "ttft_s_p95", -0.5))
    assert found.outcome == "changed"
    assert found.reasons == ("the notice says a gain of -50 % on ttft_s_p95, and its own sums give +0.0 %",)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"reason": "nothing"}, 'reason is "nothing" in the notice and "why" in the flip stored here'),
        ({"action": "keep"}, 'action is "keep" in the notice and "disable" in the flip stored here'),
        ({"segment": {"model": "other"}}, 'segment.hardware is "h100" in the flip stored here, and the notice has no such field'),
        ({"lever": "prefix_caching"}, 'lever is "prefix_caching" in the notice and "speculation" in the flip stored here'),
        ({"hint": "rm -rf"}, 'hint is "rm -rf" in the notice, and the flip stored here has no such field'),
        ({"query": None}, "query is null in the notice and {"),
        ({"shadow": False, "policy": None}, 'policy is null in the notice and "p" in the flip stored here'),
    ],
)
def test_each_field_that_was_altered_is_named_and_the_stored_sums_are_asked(store: Store, change: dict[str, Any], told: str) -> None:
    data = said(store)
    stored(store, data)
    altered = {name: value for name, value in (data | change).items() if value is not None or name == "query"}
    altered |= {"policy": "p"} if "policy" not in change else {}
    found = verify(notice(body(altered), "n.json"), Direct(store))
    assert found.outcome == "changed"
    assert any(reason.startswith(told.replace("policy is null in the notice and", "policy is")) for reason in found.reasons), found.reasons
    assert found.reasons[-1] == "the same 12 rows of sums as at 2026-03-04T06:00:00Z"
    assert found.now is not None


def test_an_altered_number_of_the_evidence_is_named_with_its_place(store: Store) -> None:
    data = said(store)
    stored(store, data)
    altered = json.loads(json.dumps(data))
    altered["evidence"][0]["n_control"] = 600
    found = verify(notice(body(altered), "n.json"), Direct(store))
    assert found.reasons[0] == "evidence[0].n_control is 600 in the notice and 60 in the flip stored here"


def test_an_altered_type_of_a_body_is_named(store: Store) -> None:
    data = said(store)
    stored(store, data)
    found = verify(notice(body(data, type="lever.resolved"), "n.json"), Direct(store))
    assert found.reasons[0] == 'type is "lever.resolved" in the notice and "lever.disable" in the flip stored here'


def test_what_a_body_left_out_because_it_was_long_is_no_alteration(store: Store) -> None:
    data = said(store, causal_chain={"expected_benefit": {"metric": "net_itl_gain"}}, reason="why " * 400)
    stored(store, data)
    short = data | {"causal_chain": None, "reason": data["reason"][:99] + "…", "left_out": ["causal_chain", "ends of texts"]}
    assert verify(notice(body(short), "n.json"), Direct(store)).outcome == "holds"
    for change in ({"reason": "else…"}, {"reason": "…"}, {"left_out": ["ends of texts"]}, {"segment": {}}):
        assert verify(notice(body(short | change), "n.json"), Direct(store)).outcome == "changed"


def test_a_notice_whose_flip_is_not_stored_is_not_said_to_hold_by_its_sums_alone(store: Store) -> None:
    found = verify(notice(body(said(store)), "n.json"), Direct(store))
    assert found.outcome == "unknown"
    assert found.reasons[-1] == "this store has no flip 'f1': what it says beside its sums cannot be checked"
    assert found.now is not None


def test_an_altered_segment_whose_flip_is_not_stored_is_told_as_such(store: Store) -> None:
    found = verify(notice(body(said(store) | {"segment": {"model": "m"}}), "n.json"), Direct(store))
    assert found.outcome == "changed"
    assert found.reasons[0] == (
        'the notice is of the segment {"model":"m"}, and its query asks for {"hardware":"h100","model":"m"}: one of them was altered'
    )


def test_values_and_counts_that_its_own_sums_do_not_give_are_told(store: Store) -> None:
    data = said(store)
    data["evidence"][0] |= {"treated": 0.05, "n_control": 600}
    assert verified(store, data).reasons == (
        "the notice says 50 ms of treated, and its own sums give 31 ms",
        "the notice says 600 requests of control, and its own sums give 60",
    )


def test_late_spans_are_counted(store: Store) -> None:
    data = said(store)
    put(store, requests(0, "treated", 13).tail(3))
    spans = pl.DataFrame({"trace_id": [f"trace-treated-0-{n}" for n in range(13)], "received_at": [AS_OF + timedelta(minutes=1)] * 13})
    with store.write() as transaction:
        transaction.using(
            spans.tail(3),
            "insert into spans_hot by name select *, trace_id as span_id, received_at as started_at, received_at as ended_at,"
            " 0 as duration_s, 0 as start_unix_nano, '' as name, '' as kind, '' as status, '' as sender, map {} as resource,"
            " map {} as attributes,"
            " [] as events, [] as links from incoming",
        )
    found = verified(store, data)
    assert found.outcome == "changed"
    assert found.reasons == ("3 of its requests have spans that came after 2026-03-04T06:00:00Z",)
    assert found.now is not None
    assert found.now.n_treated == 63


def test_what_retention_dropped_is_told(store: Store) -> None:
    data = said(store)
    drop(store, WINDOW // 2)
    found = verified(store, data)
    assert found.outcome == "changed"
    assert found.reasons == ("retention dropped 60 requests of hours within the period (age)",)


def test_rows_that_are_gone_cannot_be_checked(store: Store) -> None:
    data = said(store)
    drop(store, WINDOW)
    found = verified(store, data)
    assert found.outcome == "unknown"
    assert found.reasons == ("its rows are gone: retention dropped 120 requests of hours within the period (age)",)


def drop(store: Store, blocks: int) -> None:
    """What retention does to the requests of the first blocks."""
    until = T0 + blocks * BLOCK
    with store.write() as transaction:
        transaction.execute("delete from requests_hot where started_at < $until", {"until": until})
        transaction.execute(
            "insert into retention_log values ('requests', $since, $until, $rows, null, 'age', now())",
            {"since": T0, "until": until, "rows": 20 * blocks},
        )


def test_another_store_cannot_check(store: Store, tmp_path: Path) -> None:
    data = said(store)
    other = Store(tmp_path / "other")
    found = verified(other, data)
    other.close()
    assert found.outcome == "unknown"
    assert found.reasons[0].startswith("this store does not have its rows (it has no request of that time)")


def test_requests_that_were_corrected_changed_it(store: Store) -> None:
    data = said(store)
    with store.write() as transaction:
        transaction.execute("update requests_hot set decode_s = decode_s * 2 where request_id = 'treated-0-1'")
    found = verified(store, data)
    assert found.outcome == "changed"
    assert "neither late spans nor retention" in found.reasons[0]


def test_a_metric_that_is_asked_otherwise_today_changed(store: Store) -> None:
    data = said(store)
    sql = data["query"]["sql"].replace("count(*) as requests", "count(*) + 0 as requests")
    assert sql != data["query"]["sql"]
    found = verified(store, data | {"query": data["query"] | {"sql": sql}})
    assert (found.outcome, found.now) == ("changed", None)
    assert found.reasons == ("the metric's definition changed: of no metric of the notice does this version ask so",)


def test_a_gain_that_its_own_sums_do_not_give_is_told(store: Store) -> None:
    found = verified(store, said(store, gain=-0.5))
    assert found.outcome == "changed"
    assert found.reasons == ("the notice says a gain of -50 % on net_itl_s, and its own sums give -24 %",)


def test_a_strangers_sql_is_not_run_with_more_rights_than_ad_hoc_sql(store: Store) -> None:
    data, sandbox = said(store), Sandbox(store)
    strange = {
        "drop table requests": "ad-hoc SQL only reads",
        "select * from read_csv('/etc/passwd')": "has no answer here",
        "select 1; select 2": "has no answer here",
    }
    for number, (sql, why) in enumerate(strange.items()):
        asked = data | {"flip_id": f"strange-{number}", "query": data["query"] | {"sql": sql, "params": {}}}
        found = verify(notice(json.dumps(asked), "n.json"), Sandboxed(sandbox))
        assert found.outcome == "unknown"
        assert why in found.reasons[0]
    stored(store, data)
    assert verify(notice(json.dumps(data), "n.json"), Sandboxed(sandbox)).outcome == "holds"
    sandbox.close()


class Sandboxed(Connection):
    """Asks as a server or a folder does."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox

    def ask(self, sql: str, params: Mapping[str, Any] | None = None, limit_rows: int | None = None) -> SqlResult:
        return self.sandbox.run(sql, params, limit_rows)


def test_sql_that_answers_with_something_else_is_no_proof(store: Store) -> None:
    data = said(store)
    other = {"sql": "select 1 as one", "params": {}, "columns": ["one"], "result_hash": canonical.digest([[1]])}
    found = verified(store, data | {"query": data["query"] | other})
    assert found.outcome == "changed"
    assert "of no metric of the notice" in found.reasons[0]


@pytest.mark.parametrize("sql", ["select timestamp '2026-01-01' as one", "select 'a'::blob as one"])
def test_sums_that_are_no_numbers_or_words_cannot_be_checked(store: Store, sql: str) -> None:
    data, sandbox = said(store), Sandbox(store)
    asked = data | {"query": data["query"] | {"sql": sql, "params": {}, "columns": ["one"]}}
    assert verify(notice(json.dumps(asked), "n.json"), Sandboxed(sandbox)).outcome == "unknown"
    sandbox.close()


def test_a_period_without_offsets_is_none_that_today_would_be_asked(store: Store) -> None:
    data = said(store)
    params = data["query"]["params"] | {"since": "2026-03-04T00:00:00"}
    assert verified(store, data | {"query": data["query"] | {"params": params}}).outcome == "changed"


@pytest.mark.parametrize("wrap", [lambda data: data, lambda data: {"notice": data, "flip_id": "f"}, lambda data: [{"notice": data}]])
def test_a_body_its_data_and_a_flip_are_taken(store: Store, wrap: Any) -> None:
    assert notice(json.dumps(wrap(said(store))), "n.json").policy == "p"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no", "n.json: is no notice: "),
        ("[]", "n.json: is no JSON object; takes a webhook's body"),
        ("{}", "Object missing required field `lever`"),
        ('{"lever": "speculation", "segment": {}, "causal_chain": {"disable_when": [1]}}', "Expected `object`, got `int`"),
        ('{"type": "test", "data": {"text": "a test"}}', "a notice of type 'test' carries no decision"),
    ],
)
def test_what_is_no_notice_is_refused(text: str, why: str) -> None:
    with pytest.raises(UnreadableNoticeError) as told:
        notice(text, "n.json")
    assert why in str(told.value)


def test_the_command_answers_by_its_exit_status(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("leverwatch.cli.common.connect", lambda *_, **__: Direct(store))
    file = tmp_path / "notice.json"
    good, bad = said(store), said(store, gain=0.5, flip_id="f2")
    stored(store, good)
    stored(store, bad)
    none = good | {"query": None, "flip_id": "f3"}
    stored(store, none)
    for data, status, word in (
        (good, 0, "holds: p on"),
        (bad, 1, "changed: p on"),
        (none, 3, "cannot be checked: p on"),
    ):
        file.write_text(json.dumps(data), encoding="utf-8")
        assert main(["verify", str(file)]) == status
        assert capsys.readouterr().out.startswith(word)
    file.write_text(json.dumps(good), encoding="utf-8")
    assert main(["verify", str(file), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["now"]["gain"] == pytest.approx(GAIN)
    assert main(["verify", str(tmp_path / "nowhere.json")]) == 2
