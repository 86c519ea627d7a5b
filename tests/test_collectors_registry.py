"""The registry: read with line numbers, read again when it changes, and never replaced by a broken version."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from collectors import dialects
from collectors.registry import HEADER, Registry, RegistryError, RegistryFile, checked, parse

HEAD = ",".join(HEADER)
HOUR_NS = 3_600_000_000_000
NOON_NS = 1_795_953_600_000_000_000  # 2026-11-29T12:00:00Z


def read(*lines: str) -> Registry:
    return parse("\n".join((HEAD, *lines)) + "\n", dialects.deployment(), "levers.csv")


def test_a_timeline_has_a_row_for_each_change_of_a_replica() -> None:
    found = read(
        "vllm-0,,,model,llama",
        "vllm-0,2026-11-29T12:00:00Z,2026-11-29T14:00:00+01:00,lever.speculation,on",
        "vllm-0,2026-11-29 13:00,,lever.speculation,off",
        "vllm-1,,,gpus,8",
    )
    assert found.keys == ["gpus", "lever.speculation", "model"]
    assert found.timeline.filter(replica="vllm-0").select("since_ns", "lever.speculation", "model").rows() == [
        (0, None, "llama"),
        (NOON_NS, "on", "llama"),
        (NOON_NS + HOUR_NS, "off", "llama"),
    ]
    assert found.timeline.filter(replica="vllm-1").select("gpus", "model").rows() == [(8.0, None)]


def test_what_ends_is_unsaid_afterwards() -> None:
    assert read("a,,2026-11-29T12:00:00Z,model,x").timeline.select("since_ns", "model").rows() == [(0, "x"), (NOON_NS, None)]


def test_blank_lines_quotes_and_our_prefix_are_taken() -> None:
    found = read("", '"a, b",,,leverwatch.topology,"pd, 1p2d"', ",,,,")
    assert found.timeline.select("replica", "topology").rows() == [("a, b", "pd, 1p2d")]


def test_a_header_alone_says_nothing() -> None:
    assert read().keys == []


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["a,,,modle,x"], r"levers.csv: line 2: key 'modle' is unknown; did you mean 'model'\? known: model, tenant"),
        (["a,,,lever.speculaton,on"], r"did you mean 'lever.speculation'\?"),
        (["a,,,replica,b"], "line 2: key 'replica' is unknown"),
        (["a,,,arm.speculation,contol"], r"line 2: arm.speculation = 'contol'; did you mean 'control'\? taken: treated, control"),
        (["a,,,pool,both"], "line 2: pool = 'both'; taken: prefill, decode"),
        (["a,,,dialect,vlm"], r"line 2: dialect = 'vlm'; did you mean 'vllm'\?"),
        (["a,,,gpus,many"], "line 2: gpus = 'many': a number from 0 on is taken"),
        (["a,,,link_peak_bytes_per_s,-1"], "a number from 0 on is taken"),
        (["a,,,gpus,inf"], "a number from 0 on is taken"),
        (["a,,,model,"], "line 2: model = ''; taken: a text that is not empty"),
        ([",,,model,x"], "line 2: replica is empty"),
        (["a,,,model,x", "a,noon,,route,x"], "line 3: from_time 'noon': ISO 8601 such as"),
        (["a,2026-11-29,2026-11-29,model,x"], "line 2: until_time '2026-11-29' is not after from_time '2026-11-29'"),
        (["a,,model,x"], "line 2: 4 cells: 5 are taken"),
        (["a,,,model,x", "b,,,model,y", "a,2026-11-29,,model,z"], "lines 2 and 4 both say model of 'a' for the same time"),
        (['a,,,model,"x'], "line 2: unexpected end of data"),
    ],
)
def test_a_line_that_cannot_be_used_is_said_by_its_number(lines: list[str], told: str) -> None:
    with pytest.raises(RegistryError, match=told):
        read(*lines)


def test_another_header_is_refused() -> None:
    with pytest.raises(RegistryError, match="line 1: 'replica,key,value': the header replica,from_time,until_time,key,value is taken"):
        parse("replica,key,value\n", dialects.deployment(), "levers.csv")


def test_a_default_is_checked_like_a_line() -> None:
    assert checked("gpus", 8, dialects.deployment(), "[defaults] gpus") == ("gpus", 8.0)
    with pytest.raises(RegistryError, match=r"\[defaults\] x: key 'x' is unknown"):
        checked("x", "y", dialects.deployment(), "[defaults] x")


def test_a_changed_file_is_read_again_and_a_broken_one_leaves_the_old_in_force(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "levers.csv"
    path.write_text(f"{HEAD}\na,,,model,first\n")
    registry = RegistryFile(path, dialects.deployment())
    first = registry.current()
    assert registry.current() is first
    path.write_text(f"{HEAD}\na,,,model,second\n\n")
    assert registry.current().timeline["model"].to_list() == ["second"]
    with caplog.at_level(logging.WARNING, "leverwatch"):
        path.write_text(f"{HEAD}\na,,,modle,third\n")
        assert registry.current().timeline["model"].to_list() == ["second"]
        assert registry.current().timeline["model"].to_list() == ["second"]
        path.unlink()
        assert registry.current().timeline["model"].to_list() == ["second"]
    assert len(caplog.records) == 2
    assert "line 2: key 'modle' is unknown" in caplog.text
    assert "the version before stays in force" in registry.problem
    path.write_text(f"{HEAD}\na,,,model,fourth one\n")
    assert registry.current().timeline["model"].to_list() == ["fourth one"]
    assert registry.problem == ""


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
def test_a_file_that_cannot_be_read_at_start_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "levers.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RegistryError, match=r"levers.csv: (No such file|is no UTF-8 text)"):
        RegistryFile(path, dialects.deployment())
