"""Parameters of a statement: which it has, and what texts become."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from queries.question_values import Parameter, ParameterError, names, typed, values

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("select $a, $b, $a", ["a", "b"]),
        ("select '$no', \"$no\", 'it''s $no', $yes", ["yes"]),
        ("select 1 -- $no\n, $yes /* $no\n $no */", ["yes"]),
        ("select $$ $no $$, $tag$ $no $tag$, $yes", ["yes"]),
        ("select $a::timestamptz, x[$b]", ["a", "b"]),
        ("select 'unclosed $a", ["a"]),
        ("select $1, $", []),
    ],
)
def test_names_in_strings_and_comments_are_no_parameters(sql: str, found: list[str]) -> None:
    assert names(sql) == found


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("moment", "24h", "2026-03-01T12:00:00+00:00"),
        ("moment", "now", "2026-03-02T12:00:00+00:00"),
        ("integer", "50", 50),
        ("number", "0.5", 0.5),
        ("text", "41", "41"),
        ("any", "41", 41),
        ("any", "-1.5e3", -1500.0),
        ("any", "'41'", "41"),
        ("any", "'it''s'", "it's"),
        ("any", "true", True),
        ("any", "null", None),
        ("any", "041", "041"),
        ("any", "NaN", "NaN"),
    ],
)
def test_a_text_becomes_a_value_of_its_kind(kind: str, text: str, value: object) -> None:
    assert Parameter("p", kind).value(text, NOW) == value


@pytest.mark.parametrize("value", ["", "70", "null", "'", "it's", "a b", "'x'", 5, 0.5, True, "<512", ">=32768"])
def test_what_is_typed_for_a_value_is_read_as_that_value(value: object) -> None:
    assert Parameter("p").value(typed(value), NOW) == value


def test_an_empty_text_is_the_default_and_a_missing_default_is_null() -> None:
    assert values([Parameter("a", "integer", "7"), Parameter("b", "text")], {"a": ""}, NOW) == {"a": 7, "b": None}


def test_a_wrong_value_or_name_is_said_with_what_is_taken() -> None:
    with pytest.raises(ParameterError, match=r"\$since = 'yesterday': a time .* is taken"):
        values([Parameter("since", "moment", "24h")], {"since": "yesterday"}, NOW)
    with pytest.raises(ParameterError, match=r"parameter \$sinc is unknown; known: since"):
        values([Parameter("since", "moment", "24h")], {"sinc": "1h"}, NOW)
