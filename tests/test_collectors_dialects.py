"""Every dialect file is whole: what it reads is known and has a unit, what it cannot give is said, and a mistake is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from collectors_bodies import attribute, body, span

import collectors
from collectors import decode, dialects, translate
from collectors.dialect_parts import Dialect
from collectors.dialects import OUTCOMES, DialectError
from collectors.signals import FACTORS, SIGNALS, TEXT_UNITS
from queries.store import Store

ENGINES = Path(collectors.__file__).parent / "engines"
FILES = sorted(path for path in ENGINES.glob("*.toml") if path.name != "deployment.toml")
TYPES = {"text": "VARCHAR", "whole": "BIGINT", "real": "DOUBLE"}
# What the five metrics stand on: a dialect gives it or says why it cannot.
CORE = {"prompt_tokens", "cached_tokens", "output_tokens", "ttft_s", "queue_s", "draft_tokens"}
SMALL = """
dialect = "small"
scopes = ["small"]
[[spans]]
names = ["*"]
role = "engine"
[signals]
ttft_s = [{ key = "ttft", unit = "ms" }]
[cannot]
queue_s = "never said"
"""


def load(path: Path) -> Dialect:
    return dialects.load(path.name, path.read_bytes())


def spoken(text: str, *spans: object, scope: str = "small") -> translate.Spoken:
    """What a dialect reads from some spans."""
    tables = decode.scan([body(*spans, scope=scope)])  # type: ignore[arg-type]
    return translate.spoken(tables, (dialects.load("small.toml", text.encode()),), dialects.deployment())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_dialect_loads_under_the_name_of_its_file(path: Path) -> None:
    dialect = load(path)
    assert dialect.dialect == path.stem
    assert dialect in dialects.shipped()
    assert dialect.scopes
    assert dialect.spans
    assert path.read_text().startswith("# ")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_signal_of_a_dialect_is_known_and_has_the_unit_it_arrives_in(path: Path) -> None:
    for signal, sources in load(path).signals.items():
        assert sources, signal
        assert all(source.key for source in sources), signal
        units = TEXT_UNITS if SIGNALS[signal] == "text" else tuple(FACTORS)
        assert {source.unit for source in sources} <= set(units), signal


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_unit_fits_the_signal_it_is_converted_to(path: Path) -> None:
    """A time in tokens, or tokens in seconds, has a factor too, and would be wrong without an error."""
    fitting = {
        "_s": {"s", "ms", "us", "ns", "rust_duration"},
        "_tokens": {"tokens"},
        "_bytes": {"bytes", "mib"},
        "_per_s": {"bytes/s", "gib/s"},
    }
    for signal, sources in load(path).signals.items():
        for ending in ("_per_s", "_bytes", "_tokens", "_s"):
            if signal.endswith(ending):
                assert {source.unit for source in sources} <= fitting[ending], signal
                break


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_dialect_says_why_it_cannot_give_what_it_does_not_give(path: Path) -> None:
    dialect = load(path)
    assert dialect.cannot
    assert set(dialect.cannot) <= set(SIGNALS)
    assert all(len(reason) > 10 for reason in dialect.cannot.values())
    given = set(dialect.signals) | {rule.gives for rule in dialect.spans} | {event.signal for event in dialect.events}
    assert CORE - given <= set(dialect.cannot)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_for_every_signal_of_a_request_something_says_what_brings_it_and_the_nearest_word_wins(path: Path) -> None:
    dialect = load(path)
    why = dialects.why_missing(dialect.dialect)
    of_spans = {"join_key", "phase", "pool", "inference_s", "kv_transfer_bound_s", "retried", "inferred"}
    assert set(SIGNALS) - of_spans <= set(why)
    assert why | dialect.cannot == why


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_dialect_names_outcomes_in_our_words(path: Path) -> None:
    assert set(load(path).outcomes.values()) <= set(OUTCOMES)
    assert all(word == word.lower() for word in load(path).outcomes)


def test_dialects_with_scopes_of_their_own_are_asked_before_those_that_take_any() -> None:
    shipped = dialects.shipped()
    assert [dialect.dialect for dialect in shipped if dialect.scopes == ("*",)] == ["dynamo", "tgi", "genai"]
    assert shipped[-1].dialect == "genai"
    assert len(shipped) == len(FILES)


def test_the_signals_are_the_fields_of_the_column_signals_in_their_order_and_types(tmp_path: Path) -> None:
    store = Store(tmp_path)
    kind = store.rows("select data_type from information_schema.columns where table_name = 'spans_hot' and column_name = 'signals'")
    store.close()
    fields = re.findall(r"(\w+) (\w+)[,)]", kind[0]["data_type"].removeprefix("STRUCT("))
    assert fields == [(signal, TYPES[kind]) for signal, kind in SIGNALS.items()]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("ttft_s =", "ttfb_s =", "engines/small.toml: signal 'ttfb_s' is unknown; did you mean 'ttft_s'? known: request_id, "),
        ("ttft_s =", "zzz =", "engines/small.toml: signal 'zzz' is unknown; known: "),
        ('unit = "ms"', 'unit = "minutes"', "engines/small.toml: signal 'ttft_s': unit 'minutes' of 'ttft'; taken: s, ms, us, ns"),
        ('unit = "ms"', 'unit = "text"', "engines/small.toml: signal 'ttft_s': unit 'text' of 'ttft'; taken: s, ms"),
        ("ttft_s =", "model =", "engines/small.toml: signal 'model': unit 'ms' of 'ttft'; taken: text, json_list"),
        ('names = ["*"]', 'pattern = "("', "engines/small.toml: spans[0]: pattern '(': unclosed group"),
        ('names = ["*"]', 'pattern = "a(?=b)"', "engines/small.toml: spans[0]: pattern 'a(?=b)': look-around"),
        ('role = "engine"', 'role = "engine"\nwhere = { key = "k", pattern = "[" }', "spans[0]: where.pattern '[': unclosed"),
        ('role = "engine"', 'role = "engine"\ngives = "model"', "engines/small.toml: spans[0]: gives 'model' is no time; known: queue_s, "),
        ('role = "engine"', 'role = "motor"', "engines/small.toml: Invalid enum value 'motor' - at `$.spans[0].role`"),
        ('role = "engine"', "", "engines/small.toml: Object missing required field `role` - at `$.spans[0]`"),
        ('dialect = "small"', 'dialect = "small"\nscope = "x"', "engines/small.toml: Object contains unknown field `scope`"),
        ('names = ["*"]', 'nammes = ["*"]', "engines/small.toml: Object contains unknown field `nammes` - at `$.spans[0]`"),
        (', unit = "ms"', "", "engines/small.toml: Object missing required field `unit`"),
        ('[cannot]\nqueue_s = "never said"', "", "engines/small.toml: Object missing required field `cannot`"),
        ('queue_s = "never said"', 'quue_s = "never said"', "cannot: signal 'quue_s' is unknown; did you mean 'queue_s'?"),
        ("[cannot]", '[outcomes]\ndone = "okay"\n[cannot]', "outcomes: 'okay' of 'done'; taken: ok, error, "),
        ("[cannot]", '[outcomes]\nDone = "ok"\n[cannot]', "engines/small.toml: outcomes: 'Done' never fits"),
        ("[signals]", "signals", "engines/small.toml: "),
        ('unit = "ms"', 'unit = "ms", since = "new"', "engines/small.toml: signal 'ttft_s': since: 'new' is no version; taken: numbers"),
        ('unit = "ms"', 'unit = "ms", absent = 0.0', "signal 'ttft_s': 'absent' of 'ttft' needs 'beside', the key that shows that it was "),
        ('unit = "ms"', 'unit = "ms", beside = "n"', "signal 'ttft_s': 'absent' of 'ttft' needs 'beside'"),
        ('ttft_s = [{ key = "ttft", unit = "ms"', 'model = [{ key = "m", unit = "text", absent = 0, beside = "n"', "'m' is a number, of"),
        ('unit = "ms"', 'unit = "ms", absent = 0.0, beside = "n", of = "resource"', "'absent' of 'ttft' is a number, of an attribute of "),
        ('unit = "ms"', 'unit = "ms", pattern = "a"', "engines/small.toml: signal 'ttft_s': pattern 'a' of 'ttft' has not one group"),
        ("[cannot]", '[[also]]\nscopes = ["x"]\nwhere = [{ key = "k", pattern = "[" }]\n[cannot]', "also[0]: where.pattern '[': unclosed"),
        ("[cannot]", '[[events]]\nnames = ["e"]\nsignal = "ttfb_s"\ntake = "offset"\n[cannot]', "events[0]: signal 'ttfb_s' is unknown"),
        ("[cannot]", '[[events]]\nnames = ["e"]\nsignal = "model"\ntake = "offset"\n[cannot]', "events[0]: signal 'model' is no time"),
        ("[cannot]", '[[events]]\nnames = ["e"]\nsignal = "model"\ntake = "first"\n[cannot]', "events[0]: signal 'model': unit '' of ''"),
        ("[cannot]", '[[events]]\nnames = ["e"]\nsignal = "ttft_s"\ntake = "between"\n[cannot]', "events[0]: take 'between' needs `until`"),
    ],
)  # fmt: skip
def test_a_mistake_is_refused_with_the_file_the_key_and_what_is_taken(old: str, new: str, told: str) -> None:
    assert old in SMALL
    with pytest.raises(DialectError) as caught:
        dialects.load("small.toml", SMALL.replace(old, new, 1).encode())
    assert told in str(caught.value)


@pytest.mark.parametrize(("unit", "seconds"), [("s", 250.0), ("ms", 0.25), ("us", 0.00025), ("ns", 2.5e-7)])
@pytest.mark.parametrize("value", [250, 250.0, " 250 "])
def test_a_time_is_converted_to_seconds_from_a_number_or_a_text(unit: str, seconds: float, value: str | float) -> None:
    said = spoken(SMALL.replace('"ms"', f'"{unit}"'), span(1, attributes=[attribute("ttft", value)]))
    assert said.signals["ttft_s"].to_list() == [pytest.approx(seconds)]


@pytest.mark.parametrize("value", ["", "soon", float("nan"), float("inf"), "1e999"])
def test_a_number_that_is_none_is_null_and_not_zero(value: str | float) -> None:
    assert spoken(SMALL, span(1, attributes=[attribute("ttft", value)])).signals["ttft_s"].to_list() == [None]


def test_what_a_sender_leaves_out_is_read_where_another_key_shows_that_it_was_left_out() -> None:
    text = SMALL.replace('unit = "ms"', 'unit = "ms", absent = 5.0, beside = "n"')
    spans = [
        span(1, attributes=[attribute("n", 1)]),
        span(2, attributes=[attribute("n", 1), attribute("ttft", 250)]),
        span(3, attributes=[attribute("n", 1), attribute("ttft", "soon")]),
        span(4, attributes=[attribute("another", 1)]),
    ]
    signals = spoken(text, *spans).signals
    assert signals["ttft_s"].to_list() == [0.005, 0.25, None, None]
    assert signals["inferred"].to_list() == ["ttft_s", None, None, None]
    assert spoken(text, *spans[1:]).signals["inferred"].to_list() == [None] * 3


def test_of_several_signals_that_are_left_out_all_are_named() -> None:
    left_out = 'unit = "ms", absent = 0, beside = "n" }]\nqueue_s = [{ key = "q", unit = "s", absent = 0, beside = "m"'
    spans = [span(1, attributes=[attribute("n", 1), attribute("m", 1)]), span(2, attributes=[attribute("m", 1)])]
    assert spoken(SMALL.replace('unit = "ms"', left_out), *spans).signals["inferred"].to_list() == ["queue_s,ttft_s", "queue_s"]


def test_the_first_source_that_speaks_wins_and_the_deployment_wins_over_the_dialect() -> None:
    text = SMALL.replace("[signals]", '[signals]\nmodel = [{ key = "a", unit = "text" }, { key = "b", unit = "text" }]')
    spans = [
        span(1, attributes=[attribute("b", "second"), attribute("a", "first")]),
        span(2, attributes=[attribute("a", ""), attribute("b", "second")]),
        span(3, attributes=[attribute("a", "first"), attribute("leverwatch.model", "stated")]),
        span(4),
    ]
    assert spoken(text, *spans).signals["model"].to_list() == ["first", "second", "stated", None]


def test_the_first_rule_that_fits_decides() -> None:
    rules = """[[spans]]
names = ["GET *"]
role = "gateway"
where = { key = "uri", pattern = "^/v1/" }
[[spans]]
names = ["GET *"]
role = "housekeeping"
[[spans]]"""
    spans = [
        span(1, name="GET /", attributes=[attribute("uri", "/v1/chat")]),
        span(2, name="GET\nboth", attributes=[attribute("uri", "/metrics")]),
        span(3, name="GET both", attributes=[attribute("uri", "/metrics")]),
        span(4, name="POST"),
    ]
    said = spoken(SMALL.replace("[[spans]]", rules, 1), *spans)
    assert said.role.to_list() == ["gateway", "engine", "housekeeping", "engine"]
    assert spoken(SMALL, *spans, scope="another").role.to_list() == [None] * 4
