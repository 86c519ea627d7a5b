"""Scenario files say what they play and what is true; a wrong one says in which file and at which key."""

from __future__ import annotations

from importlib import resources

import pytest

from demo import questions, scenarios
from demo.scenarios import ScenarioError
from demo.scenarios.layout import TRAFFIC_KNOBS, Scenario, Truth

MINIMAL = """
name = "x"
what = "x"
hours = 1
[[pools]]
name = "a"
model = "m"
engine = "vllm"
network = "dense-8b"
hardware = "h100"
groups = 4
lever = "speculation"
[pools.serving]
speculation = { draft_tokens = 4, acceptance = [0.5] }
[pools.control]
[[traffic]]
name = "chat"
pool = "a"
requests_per_s = 1
input_tokens = [512, 2047]
output_median_tokens = 50
[[changes]]
knob = "requests_per_s"
of = "chat"
from_hour = 0.5
factor = 2
[[evaluations]]
suite = "s"
kind = "product"
pool = "a"
better = "higher"
original = 0.8
treated = 0.8
sd = 0.01
[[truth]]
lever = "speculation"
segment = { model = "m" }
question = "net_itl_gain"
before = 0.3
tolerance = 0.05
why = "so"
"""


def every() -> list[Scenario]:
    return [scenarios.load(name) for name in scenarios.names()]


@pytest.mark.parametrize("name", scenarios.names())
def test_a_scenario_is_called_as_its_file_and_has_at_most_ten_hours(name: str) -> None:
    scenario = scenarios.load(name)
    assert scenario.name == name
    assert 0 < scenario.hours <= 10
    assert scenario.what.endswith(".")


@pytest.mark.parametrize("name", scenarios.names())
def test_what_is_true_is_asked_by_a_question_that_there_is_of_a_segment_that_is_served(name: str) -> None:
    scenario = scenarios.load(name)
    asked = {entry.name for entry in resources.files(questions).iterdir()}
    for truth in scenario.truth:
        assert f"{truth.question}.sql" in asked
        assert served(scenario, truth)
        if truth.from_hour is not None:
            assert 0 < truth.from_hour < scenario.hours


def served(scenario: Scenario, truth: Truth) -> bool:
    """Whether some pool is of the truth's segment, as far as a pool states it."""
    for pool in scenario.pools:
        stated = {"model": pool.model, "hardware": pool.hardware, "topology": pool.serving.topology}
        if all(truth.segment.get(key, value) == value for key, value in stated.items()):
            return True
    return False


@pytest.mark.parametrize("name", scenarios.names())
def test_what_changes_does_so_within_the_scenarios_hours_of_something_that_it_has(name: str) -> None:
    scenario = scenarios.load(name)
    for change in scenario.changes:
        named = scenario.traffic if change.knob in TRAFFIC_KNOBS else scenario.pools
        assert change.of in {one.name for one in named}
        assert change.from_hour < scenario.hours


def test_the_smallest_scenario_has_its_defaults() -> None:
    scenario = scenarios.parse(MINIMAL, "here.toml")
    [pool] = scenario.pools
    assert (pool.serving.tensor_parallel, pool.control_every, pool.serving.topology) == (1, 4, "tp1")
    assert pool.control is not None
    assert pool.control.speculation is None


@pytest.mark.parametrize(
    ("serving", "topology", "gpus"),
    [
        ("tensor_parallel = 4", "tp4", 4),
        ("tensor_parallel = 4\nexpert_parallel = 8", "tp4-ep8", 8),
        ("tensor_parallel = 2\npipeline_parallel = 3", "tp2-pp3", 6),
        ("split = { prefill = 1, decode = 2, link_bytes_per_s = 1e9 }", "pd-1p2d", 1),
    ],
)
def test_a_topology_is_named_after_its_degrees_and_has_their_accelerators(serving: str, topology: str, gpus: int) -> None:
    pool = scenarios.parse(MINIMAL.replace("[pools.serving]", f"[pools.serving]\n{serving}"), "here.toml").pools[0]
    assert (pool.serving.topology, pool.serving.gpus) == (topology, gpus)


def test_an_unknown_scenario_is_answered_with_the_nearest() -> None:
    with pytest.raises(ScenarioError, match=r"scenario 'batch-grow' is unknown; did you mean 'batch-grows'\? known: .*batch-grows"):
        scenarios.load("batch-grow")


@pytest.mark.parametrize(
    ("was", "becomes", "said"),
    [
        ("hours = 1", "hours = 11", r"Expected `float` <= 10.0 - at `\$.hours`"),
        ("hours = 1", "hours = 1\nflavor = 2", "Object contains unknown field `flavor`"),
        ("groups = 4", "groups = 0", r"Expected `int` >= 1 - at `\$.pools\[0\].groups`"),
        ("groups = 4", "groups = 3", r"pools\[0\].groups: 3: with a control it takes a multiple of control_every, 4"),
        ('"dense-8b"', '"dense-8c"', r"pools\[0\].network: 'dense-8c' is unknown; did you mean 'dense-8b'\? known: "),
        ('"h100"', '"h200"', r"pools\[0\].hardware: 'h200' is unknown; did you mean 'h100'\? known: h100, "),
        ('"dense-8b"', '"dense-70b"', r"pools\[0\].serving: the weights take 140 GB"),
        ("acceptance = [0.5]", "acceptance = []", r"Expected `array` of length >= 1 - at `\$.pools\[0\].serving.speculation.acceptance`"),
        ("acceptance = [0.5]", "acceptance = [1.5]", r"Expected `float` <= 1.0 - at `\$.pools\[0\].serving.speculation.acceptance\[0\]`"),
        ('lever = "speculation"\n[pools', "[pools", r"pools\[0\].control: there is no lever that it is the control of"),
        ("[pools.control]", "[pools.control]\nsplit = { prefill = 1, decode = 1, link_bytes_per_s = 1e9 }", "a split is the treated arm's"),
        ('pool = "a"\nrequests', 'pool = "b"\nrequests', r"traffic\[0\].pool: 'b' is unknown; known: a"),
        ("[512, 2047]", "[2048, 2047]", r"traffic\[0\].input_tokens: the lower end 2048 is above the upper one 2047"),
        ('of = "chat"', 'of = "a"', r"changes\[0\].of: 'a' is unknown; known: chat"),
        ('"requests_per_s"\nof', '"request_rate"\nof', r"Invalid enum value 'request_rate' - at `\$.changes\[0\].knob`"),
        ('pool = "a"\nbetter', 'pool = "b"\nbetter', r"evaluations\[0\].pool: 'b' is unknown; known: a"),
        ("before = 0.3", "before = 0.3\nfrom_hour = 0.5", r"truth\[0\]: from_hour and after go together"),
        ("hours = 1", "hours = 1\nscrape_s = inf", r"scrape_s: inf: a number from 1 to 3600 is taken"),
        ("hours = 1", "hours = 1\nscrape_s = 1e-9", r"scrape_s: 1e-09: a number from 1 to 3600 is taken"),
        ("hours = 1", "hours = 1\nnoise = { pool_sd = nan }", r"pool_sd"),
        ("hours = 1", "hours = 1\ndisorder = { clock_ahead_s = { a-0 = inf } }", r"disorder.clock_ahead_s.a-0: inf: a number from"),
        ("hours = 1", "hours = 1\ndisorder = { clock_ahead_s = { b-0 = 1 } }", r"disorder.clock_ahead_s: 'b-0' is no replica"),
        ("hours = 1", "hours = 1\ndisorder = { abort_share = 0.6, error_share = 0.6 }", r"disorder: abort_share and error_share are 1.2"),
        ("groups = 4", "groups = 1000000000", r"pools\[0\].groups: 1e\+09: a number from 1 to 1000 is taken"),
        ("[pools.serving]", "[pools.serving]\nkv_tokens = -5", r"pools\[0\].serving.kv_tokens: -5: a number from 1"),
        ('name = "a"', 'name = "a/\\"b"', r"pools\[0\].name: 'a/\"b': letters, digits"),
        ('lever = "speculation"\n[pools', 'lever = "speculations"\n[pools', r"pools\[0\].lever: 'speculations' is unknown; known: "),
        ('question = "net_itl_gain"', 'question = "net_itl_gains"', r"truth\[0\].question: 'net_itl_gains' is unknown; known: "),
        ('segment = { model = "m" }', 'segment = { "1=1 or model" = "m" }', r"truth\[0\].segment: '1=1 or model' is unknown; known: "),
        ('segment = { model = "m" }', 'segment = { model = "n" }', r"truth\[0\].segment.model: 'n' is unknown; known: m"),
        ("[[traffic]]", '[[traffic]]\ntenants = 5000', r"Expected `int` <= 4096 - at `\$.traffic\[0\].tenants`"),
    ],
)  # fmt: skip
def test_what_cannot_be_played_is_refused_with_file_and_key(was: str, becomes: str, said: str) -> None:
    assert MINIMAL.count(was) == 1
    with pytest.raises(ScenarioError, match=rf"^here.toml: .*({said})"):
        scenarios.parse(MINIMAL.replace(was, becomes), "here.toml")
