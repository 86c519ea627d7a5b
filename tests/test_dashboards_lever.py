"""The lever page: its numbers are those of the API, what is worst stands first, and what is not known is said as such."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import dashboards_rows
import msgspec
import polars as pl
import pytest
from dashboards_rows import FLEETS, HOSTILE, NOW
from polars.testing import assert_frame_equal

from dashboards import break_even_chart, lever_chain, lever_total, time_line
from dashboards.charts import Period
from dashboards.choice import ChoiceError, title
from dashboards.figure import Figure
from dashboards.page import Asked
from dashboards.pages import lever
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from pipeline.segments import canonical

HOUR = timedelta(hours=1)
WORST = canonical(FLEETS[1].keys)
BREAK_EVEN = {
    "lever": "speculation", "segment": WORST, "key": "batch", "metric": "tpot_s", "basis": "control", "since": NOW - timedelta(hours=20),
    "until": NOW, "buckets": ["<2", "2-3", "4-7", "8-15"], "blocks": [40, 30, 30, 0], "gains": [0.3, 0.1, -0.2, None],
    "gains_low": [0.2, -0.1, -0.3, None], "gains_high": [0.4, 0.3, -0.1, None], "signs": ["pays", "open", "loses", "open"],
    "pays_edge": 1, "loses_edge": 4, "point": 3.0, "line_point": None, "state": "partly", "note": "pays up to <2, loses from 4-7 on",
}  # fmt: skip
UNRESOLVED = BREAK_EVEN | {
    "key": "input_tokens", "gains": [None] * 4, "gains_low": [None] * 4, "gains_high": [None] * 4, "signs": ["open"] * 4,
    "pays_edge": None, "loses_edge": None, "point": None, "state": "not resolved yet", "note": "no bucket pays or loses yet",
}  # fmt: skip


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineRoom]:
    opened = EngineRoom(tmp_path_factory.mktemp("data"), Config(), clock=lambda: NOW)
    dashboards_rows.fill(opened.store)
    policy = next(one for one in opened.policies if one.lever == "speculation")
    body = msgspec.to_builtins(policy) | {"shadow": True, "owner": HOSTILE}
    listed = [("speculation", policy, msgspec.json.encode(policy).decode()), ("aside", policy, msgspec.json.encode(body).decode())]
    with opened.store.write() as transaction:
        for name, one, text in listed:
            values = {
                "name": name,
                "version": str(one.version),
                "lever": one.lever,
                "owner": HOSTILE,
                "body": text,
                "at": NOW,
                "shadow": name == "aside",
            }
            transaction.execute("insert into policies values ($name, $version, $lever, $owner, $body, $at, $shadow)", values)
        for kept in (BREAK_EVEN, UNRESOLVED):
            transaction.execute(f"insert into break_even by name select {', '.join(f'${name} as {_quoted(name)}' for name in kept)}", kept)
        scope = canonical({"model": FLEETS[1].model, "hardware": "h100", "topology": "tp8"})
        for setting, hours, is_change in (("eagle-2", 30, False), ("eagle-4", 5, True)):
            said = {"scope": scope, "setting": setting, "since": NOW - timedelta(hours=hours), "is_change": is_change}
            transaction.execute("insert into settings_in_use values ('speculation', $scope, $setting, $since, $is_change)", said)
        deploy = "insert into deploys values ($model, 'h100', 'vllm', '0.12.0', $since, true)"
        transaction.execute(deploy, {"model": FLEETS[1].model, "since": NOW - timedelta(hours=4)})
        tenfold = ", ".join(f"{name} = 10 * {name}" for name in ("known", "n", "num", "den", "num_sq", "den_sq", "num_den"))
        transaction.execute(f"update block_cells set {tenfold}")  # a ledger asks for 5 requests of each arm in a block
        transaction.execute("insert into closed_blocks (until) values ($until)", {"until": NOW})
    yield opened
    opened.close()


def _quoted(name: str) -> str:
    return f'"{name}"'


def asked(room: EngineRoom, **query: str) -> Asked:
    return Asked(room, {"lever": "speculation", **query}, NOW, path="/lever")


@pytest.fixture(scope="module")
def page(room: EngineRoom) -> str:
    return lever.draw(asked(room))


@pytest.fixture(scope="module")
def drawn(room: EngineRoom) -> dict[str, Figure]:
    return {figure.key: figure for figure in lever.figures(asked(room))}


def test_the_gains_on_the_page_are_those_of_the_api_the_worst_first(room: EngineRoom, page: str, drawn: dict[str, Figure]) -> None:
    told = room.effects("speculation").filter((pl.col("metric") == "net_itl_s") & (pl.col("basis") == "control"))
    table = page[page.index('<table class="segments lever">') :]
    shown = [float(value) for value in re.findall(r'<data value="(-?[\d.e-]+)">[^<]*</data></span>\s*<span class="small line">', table)]
    assert shown == sorted(told["gain"].to_list())
    values = drawn["effects"].values
    assert values is not None
    assert values["gain"].to_list() == shown
    assert table.index(title(FLEETS[1].keys).split(" · ")[2]) < table.index("2048-8191")


def test_the_question_behind_the_effects_gives_the_numbers_of_the_figure(room: EngineRoom, drawn: dict[str, Figure]) -> None:
    figure = drawn["effects"]
    assert figure.sql is not None
    assert figure.values is not None
    answered = room.store.frame(figure.sql.text, figure.sql.params).filter(pl.col("basis") == "control")
    assert answered["gain"].to_list() == figure.values["gain"].to_list()
    assert (figure.n, figure.coverage, figure.newest_at) == (sum(answered["n_a"]) + sum(answered["n_b"]), 1.0, NOW)


def test_a_segment_that_cannot_be_compared_says_what_it_lacks(page: str) -> None:
    row = page[page.index("qwen3-32b · ") :]
    assert "no control arm" in row[: row.index("</tr>")]


def test_the_total_says_standardized_pooled_and_each_stratum_as_the_api(room: EngineRoom, drawn: dict[str, Figure]) -> None:
    rows = room.effects("speculation", total=True)
    told = rows.filter((pl.col("metric") == "net_itl_s") & (pl.col("arm_a") == "treated")).row(0, named=True)
    values = drawn["total"].values
    assert values is not None
    assert dict(values.select("what", "gain").iter_rows())[lever_total.STANDARDIZED] == told["gain"]
    assert dict(values.select("what", "gain").iter_rows())[lever_total.POOLED] == told["pooled_gain"]
    assert sorted(values["gain"][2:]) == sorted(gain for gain in told["strata_gains"] if gain is not None)


def test_a_pooled_gain_that_misleads_is_warned_of() -> None:
    row: dict[str, Any] = {"is_misleading": True, "note": "pooled misleads: it shows +10.0 %, the strata -5.0 % to -4.0 %"}
    assert lever_total.warning(row).startswith("Do not read the pooled gain: pooled misleads")
    assert lever_total.warning(row | {"is_misleading": False}) == ""


def test_the_ledger_is_that_of_the_api_of_the_worst_segment(room: EngineRoom, drawn: dict[str, Figure]) -> None:
    book = room.budgets("speculation", WORST)[0]
    values = drawn["budget"].values
    assert values is not None
    assert_frame_equal(values, pl.DataFrame(book["rows"], schema=values.schema), rel_tol=1e-9)
    assert book["said"][1:] in drawn["budget"].note
    assert next(row for row in book["rows"] if row["metric"] == "e2e_s")["change"] > 0


def test_a_break_even_is_drawn_with_its_band_and_one_that_is_not_resolved_says_so(drawn: dict[str, Figure]) -> None:
    known, unknown = drawn["break-even-batch"], drawn["break-even-input-tokens"]
    assert known.drawing is not None
    assert [row[-1] for row in known.numbers] == ["pays", "open", "loses"]
    assert known.note.startswith("Partly: pays up to <2, loses from 4-7 on. The gain is 0 at about 3.")
    assert unknown.drawing is None
    assert "no bucket pays or loses yet" in unknown.note


def test_a_break_even_by_a_key_that_treatment_changes_is_said_to_be_descriptive() -> None:
    assert "shown and not judged" in break_even_chart.words(BREAK_EVEN | {"basis": "descriptive"})


def test_the_chain_gives_each_link_and_each_threshold_with_its_source(room: EngineRoom, page: str) -> None:
    policy = next(one for one in room.policies if one.lever == "speculation")
    row = room.frame("from policies where policy = 'speculation'").row(0, named=True)
    chain = lever_chain.chain(row, "now")
    assert [link.name for link in chain.links] == [name for _, name, _ in lever_chain._LINKS]
    assert len(chain.thresholds) == len(policy.disable_when) + len(policy.gates) + 1
    assert all(one.source for one in chain.thresholds)
    assert (chain.margin, chain.steps) == (0.02, list(policy.rollback.steps))
    assert html.escape(policy.disable_when[0].source, quote=False) in html.unescape(page)


def test_a_shadow_is_said_and_strangers_texts_are_escaped(page: str) -> None:
    assert "shadow: judged, notifies nobody" in page
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_settings_flips_and_deploys_stand_on_one_time_line(drawn: dict[str, Figure]) -> None:
    told = [(row[1], row[3]) for row in drawn["time-line"].numbers]
    assert ("setting", "eagle-2 → eagle-4") in told
    assert ("deploy", "vllm 0.12.0") in told
    assert ("flip", "on → off recommended") in told


def test_a_flip_marks_the_row_of_its_own_setting_alone() -> None:
    scopes = ['{"model":"a"}', '{"hardware":"h100","model":"b"}']
    marks = [{"kind": "setting", "scope": scope, "noted_at": NOW - HOUR, "setting": "on", "before": None} for scope in scopes]
    flip = {"kind": "flip", "noted_at": NOW - HOUR / 2, "setting": "off_recommended", "before": "on"}
    of = [
        time_line._turns({**flip, "scope": scope}, scopes) for scope in ('{"model":"a","topology":"tp2"}', '{"model":"b"}', '{"model":"c"}')
    ]
    assert [[one.get("row") for one in found] for found in of] == [[0], [1], [None]]
    drawn = time_line.figure([*marks, {**flip, "scope": '{"model":"c"}'}], Period(NOW - 2 * HOUR, NOW))
    assert drawn.note.endswith("Dashed: of a segment without a bar.")


def test_the_debt_is_that_of_the_api(room: EngineRoom, page: str) -> None:
    owed = room.debt().row(0, named=True)
    assert owed["segment"] == WORST
    section = page[page.index('<section id="debt">') : page.index('<section id="chain">')]
    told = [float(value) for value in re.findall(r'<data value="(-?[\d.e+-]+)">', section)]
    assert told == pytest.approx([owed["requests"], owed["lost_s"]])


def test_another_segment_and_metric_can_be_asked_for_in_the_url(room: EngineRoom) -> None:
    keys = {key: value for key, value in FLEETS[0].keys.items() if value}
    said = lever.draw(asked(room, **keys, metric="ttft_s"))
    assert "Effect by segment: Time to first token" in said
    assert f"Break-even and budget: {html.escape(title(FLEETS[0].keys))}" in said
    assert "no effect on this metric yet" in said


def test_a_lever_that_nobody_uses_and_one_that_is_none_are_said(room: EngineRoom) -> None:
    assert "Expert parallel is not in use" in lever.draw(Asked(room, {"lever": "expert_parallel"}, NOW))
    with pytest.raises(ChoiceError, match="did you mean 'speculation'"):
        lever.draw(Asked(room, {"lever": "speculations"}, NOW))


def test_without_a_lever_the_one_that_is_worst_is_shown(room: EngineRoom) -> None:
    assert "Speculation stopped paying in 1 of" in lever.draw(Asked(room, {}, NOW))
