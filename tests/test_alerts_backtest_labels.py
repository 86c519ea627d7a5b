from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from alerts.backtest_labels import Label, LabelError, labels, marks, missed, stream_days
from alerts.backtest_told import Backtest, Judged, Recommendation, Switch

T0 = datetime(2026, 3, 4, tzinfo=UTC)
SEGMENT = '{"hardware":"h100","model":"m"}'
STREAM = {"policy": "p", "lever": "speculation", "segment": SEGMENT}
HEAD = "lever,segment,from,until,note\n"


def at(hour: float) -> datetime:
    return T0 + timedelta(hours=hour)


def found(*fired: tuple[float, float | None], switched: float | None = None) -> Backtest:
    """A day of one stream with recommendations from and until these hours."""
    why = {"action": "disable", "severity": "warning", "shadow": False, "reason_code": "harm", "reason": "why"}
    made = tuple(
        Recommendation(**STREAM, **why, fired_at=at(since), ended_at=None if until is None else at(until)) for since, until in fired
    )
    stream = Judged(**STREAM, first_block_at=T0, last_block_at=at(24), blocks=288, verdicts={"keep": 288})
    switches = () if switched is None else (Switch(lever="speculation", segment=SEGMENT, replica="r", switched_at=at(switched)),)
    return Backtest(recommendations=made, streams=(stream,), switches=switches)


def label(since: float, until: float | None, **segment: str) -> Label:
    return Label(lever="speculation", segment=segment, since=at(since), until=None if until is None else at(until), note="bad drafts")


def test_a_recommendation_within_a_label_is_true_and_counts_from_its_beginning() -> None:
    [mark] = marks(found((5, 9)), [label(4.5, 8, model="m")])
    assert (mark.is_false, mark.after_s, mark.lasted_s, mark.note) == (False, 1800, 4 * 3600, "bad drafts")


@pytest.mark.parametrize(
    "other",
    [label(6, 8), label(1, 5), label(1, 9, model="other"), label(1, 9, tenant="t"), Label(lever="disaggregation", segment={}, since=T0)],
)
def test_a_recommendation_outside_every_label_is_false(other: Label) -> None:
    [mark] = marks(found((5, 9)), [other])
    assert mark.is_false


def test_without_labels_nothing_is_false_or_true() -> None:
    [mark] = marks(found((5, None)), None)
    assert (mark.is_false, mark.after_s, mark.lasted_s) == (None, None, None)


@pytest.mark.parametrize(("switched", "before_s"), [(8, 3 * 3600), (4, -3600), (None, None)])
def test_how_early_it_was_is_held_against_the_operators_own_switch(switched: float | None, before_s: float | None) -> None:
    [mark] = marks(found((5, 9), switched=switched), None)
    assert mark.before_switch_s == before_s


def test_a_label_that_no_recommendation_met_is_missed() -> None:
    given = [label(4, 6), label(12, 14), label(22, None), label(30, 31), label(1, 2, model="other")]
    assert missed(found((5, 7)), given) == (given[1], given[2])


def test_stream_days_are_of_blocks_that_were_judged() -> None:
    assert stream_days(found()) == 1.0


def test_labels_are_read_with_their_keys_and_times_in_utc() -> None:
    text = HEAD + 'speculation,"{""model"": ""m""}",2026-03-04T05:00:00+01:00,2026-03-04T08:00,swap\nprefix_caching,{},2026-03-04,,\n'
    first, second = labels(text, "l.csv")
    assert first == Label(lever="speculation", segment={"model": "m"}, since=at(4), until=at(8), note="swap")
    assert second == Label(lever="prefix_caching", segment={}, since=T0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lever,from,why\n", "l.csv: columns lever, from, why: lever, segment, from, until, note are taken"),
        ("", "columns none"),
        (HEAD + "speculatoin,{},2026-03-04,,\n", "line 2: lever 'speculatoin' is unknown; did you mean 'speculation'"),
        (HEAD + "speculation,[],2026-03-04,,\n", "line 2: segment '[]' is no JSON object of texts"),
        (HEAD + "speculation,{},yesterday,,\n", "line 2: from 'yesterday' is no time"),
        (HEAD + "speculation,{},2026-03-04,2026-03-03,\n", "line 2: until '2026-03-03' is not after from '2026-03-04'"),
    ],
)
def test_what_is_wrong_with_a_label_is_said_with_its_line(text: str, said: str) -> None:
    with pytest.raises(LabelError) as told:
        labels(text, "l.csv")
    assert said in str(told.value)
