"""A figure in, the file that somebody takes away out: SVG, PNG or CSV, whole by itself."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import polars as pl

from dashboards import theme
from dashboards.figure import Figure
from dashboards.studio import Studio

KINDS = {"svg": "image/svg+xml; charset=utf-8", "png": "image/png", "csv": "text/csv; charset=utf-8"}
_STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class NotDrawnError(ValueError):
    """There is nothing to draw; says why."""


def file(figure: Figure, kind: str, studio: Studio) -> bytes:
    """The figure as one of `KINDS`, in the light theme's colors; CSV holds stored units.

    Raises:
        NotDrawnError: it has no data, or the kind is none of these.
        DrawingError, CrowdedError: it was not drawn.
    """
    if kind not in KINDS:
        msg = f"format {kind!r} is unknown; known: {', '.join(KINDS)}"
        raise NotDrawnError(msg)
    if kind == "csv":
        return _csv(figure).encode()
    if figure.drawing is None:
        msg = f"{figure.title}: {figure.note}"
        raise NotDrawnError(msg)
    svg = _colored(studio.svg(figure.drawing))
    return svg.encode() if kind == "svg" else studio.png(svg)


def _colored(svg: str) -> str:
    """The drawing by itself: custom properties of the page are filled in, and it stands on the color of a card."""
    filled = re.sub(r"var\(--([\w-]+)\)", lambda found: theme.LIGHT[found[1]], svg)
    ground = f'<rect width="100%" height="100%" fill="{theme.LIGHT["card"]}"/>'
    return re.sub(r"(<svg[^>]*>)", rf"\1{ground}", filled, count=1)


def _csv(figure: Figure) -> str:
    columns, rows = (figure.columns, figure.numbers) if figure.values is None else _plain(figure.values)
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_harmless(value) for value in row] for row in rows)
    return made.getvalue()


def _plain(frame: pl.DataFrame) -> tuple[list[str], list[list[Any]]]:
    timed = frame.with_columns(pl.col(pl.Datetime).dt.strftime("%Y-%m-%dT%H:%M:%SZ"))
    return timed.columns, [list(row) for row in timed.iter_rows()]


def _harmless(value: Any) -> Any:
    """A spreadsheet runs a text that begins like a formula; with an apostrophe before it, it stays text."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_STARTS_A_FORMULA) else value
