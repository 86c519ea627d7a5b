"""Effects in, a table that a terminal can show out: a row an effect, what is said of it in notes below."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from dashboards.short_names import told_apart
from pipeline.segments import CELL_SEGMENT_KEYS
from queries.results import digits

WIDTH = 160
ALL = "(all)"
LEFT = ("segment", "metric", "arm", "evidence", "basis")
BETWEEN = "  "
Row = Mapping[str, Any]


def text(frame: pl.DataFrame) -> str:
    """The table, `WIDTH` characters wide at most, and the notes that it refers to."""
    notes: dict[str, int] = {}
    rows = [_cells(row, notes) for row in frame.iter_rows(named=True)]
    if all(row["arm"] == "treated" for row in rows):
        rows = [{**row, "arm": ""} for row in rows]
    names = [name for name in rows[0] if any(row[name] for row in rows)] if rows else ["segment", "metric", "gain"]
    widths = {name: max([len(name), *(len(row[name]) for row in rows)]) for name in names}
    room = WIDTH - (sum(widths.values()) - widths["segment"] + len(BETWEEN) * (len(names) - 1)) if "segment" in names else 0
    if rows and widths.get("segment", 0) > room > 0:
        short = told_apart([row["segment"] for row in rows], room)
        rows = [{**row, "segment": name} for row, name in zip(rows, short, strict=True)]
        widths["segment"] = max([len("segment"), *map(len, short)])
    lines = [_line({name: name for name in names}, widths), _line({name: "-" * widths[name] for name in names}, widths)]
    lines += [_line(row, widths) for row in rows]
    return (
        "\n".join([*lines, *(textwrap.fill(f"{number}: {note}", WIDTH, subsequent_indent="   ") for note, number in notes.items())]) + "\n"
    )


def _cells(row: Row, notes: dict[str, int]) -> dict[str, str]:
    return {
        "segment": _segment(row["segment"]),
        "metric": row["metric"],
        "arm": row.get("arm_a") or "treated",
        "treated / control": _both(row.get("value_a"), row.get("value_b"), digits),
        "gain": _gain(row),
        "pooled": "" if row.get("pooled_gain") is None else _percent(row["pooled_gain"]),
        "evidence": _evidence(row),
        "n": _both(row.get("n_a"), row.get("n_b") or None, "{:,}".format),
        "blocks": "" if row.get("blocks") is None else str(row["blocks"]),
        "basis": row.get("basis") or "",
        "note": str(notes.setdefault(row["note"], len(notes) + 1)) if row.get("note") else "",
    }


def _segment(told: str) -> str:
    keys = json.loads(told)
    return " · ".join(str(keys[key]) for key in dict.fromkeys([*CELL_SEGMENT_KEYS, *keys]) if key in keys) or ALL


def _both(a: Any, b: Any, said: Any) -> str:
    return " / ".join(said(one) for one in (a, b) if one is not None)


def _gain(row: Row) -> str:
    """`-33 % (-63..-3.4 %)`; without the interval where there is none."""
    if row.get("gain") is None:
        return ""
    low, high = row.get("gain_low"), row.get("gain_high")
    return _percent(row["gain"]) + (f" ({_number(low)}..{_number(high)} %)" if low is not None and high is not None else "")


def _evidence(row: Row) -> str:
    """What all looks together make evident, and since when the lever may be worse."""
    turned = f"since {str(row['turned_at'])[5:16].replace('T', ' ')}" if row.get("turned_at") else ""
    return " ".join(filter(None, (row.get("believed"), turned)))


def _percent(ratio: float) -> str:
    return f"{_number(ratio)} %"


def _number(ratio: float) -> str:
    return f"{100 * ratio:+.0f}" if abs(ratio) >= 0.1 else f"{100 * ratio:+.2g}"


def _line(row: Mapping[str, str], widths: Mapping[str, int]) -> str:
    return BETWEEN.join(row[name].ljust(width) if name in LEFT else row[name].rjust(width) for name, width in widths.items()).rstrip()


def wide(frame: pl.DataFrame, unshown: Sequence[str]) -> pl.DataFrame:
    """Every column but those: one for each key of a segment, four digits, and none that says nothing."""
    segments = [json.loads(told) for told in frame["segment"]]
    if "missing" in frame.columns:
        frame = frame.with_columns(pl.col("missing").list.join("; "))
    named = dict.fromkeys([*CELL_SEGMENT_KEYS, *(key for segment in segments for key in segment)])
    keys = [pl.Series(key, [segment.get(key) for segment in segments], pl.String) for key in named]
    if any(segments):
        keys[0] = pl.Series(keys[0].name, [segment.get(keys[0].name) if segment else ALL for segment in segments], pl.String)
    whole = pl.DataFrame(keys).hstack(frame.drop(unshown, strict=False)).with_columns(pl.selectors.float().round_sig_figs(4))
    return whole.select(name for name in whole.columns if whole[name].null_count() < len(whole) or whole.is_empty())
