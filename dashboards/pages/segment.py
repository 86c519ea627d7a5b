"""The segment page: what arrives, which segments' speculation pays, and the chosen segment over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from dashboards import doubts, flips, segment_charts, segment_table, templating, theme, unjudged
from dashboards.arriving import Arriving, arriving
from dashboards.charts import Figure, Period
from dashboards.choice import KEYS, PERIODS, Choice, choice, title
from dashboards.flips import Flip
from dashboards.headline import headline
from dashboards.reader import Reader
from dashboards.segment_table import LEVER, SHOWN_ROWS, Row
from pipeline.metrics import by_name
from pipeline.segments import canonical
from queries import files

GAIN_METRIC = "net_itl_s"


def draw(reader: Reader, query: Mapping[str, str], now: datetime) -> str:
    """The page as HTML. Raises ValueError for a period that is none."""
    here = arriving(reader, now)
    chosen = choice(query, here.until)
    rows = _rows(reader, chosen, now)
    shown = chosen if chosen.keys or not rows else Choice(_given(rows[0].keys), chosen.since_text, chosen.since, chosen.until)
    turned = flips.newest(reader, now, LEVER, shown.segment)
    return templating.render(
        "segment.html",
        arriving=here,
        rows=rows[:SHOWN_ROWS],
        left_out=max(0, len(rows) - SHOWN_ROWS),
        doubts=doubts.told(reader, chosen.since, chosen.until),
        headline=headline(rows),
        shows_after=unjudged.SHOWS_AFTER,
        headings=[by_name()[name] for name, _ in segment_table.COLUMNS],
        missing=_missing(rows),
        chosen=shown,
        chosen_title=title(shown.keys),
        figures=_figures(reader, shown, turned),
        why=turned[0] if turned else None,
        flips=flips.newest(reader, now),
        periods=[(period, shown.url(since=period)) for period in PERIODS],
        updated=f"{now:%H:%M:%S} UTC",
        period=_period(here, chosen, now),
    )


def _rows(reader: Reader, chosen: Choice, now: datetime) -> list[Row]:
    report, verdicts = _report(reader, chosen), _verdicts(reader)
    judged = {row["segment"] for row in verdicts}
    others = {canonical({key: row[key] for key in KEYS}) for row in report} - judged
    whys = unjudged.whys(reader, sorted(others), LEVER, chosen.since, chosen.until) if others else {}
    return segment_table.rows(report, verdicts, _gains(reader, chosen), whys, chosen, now)


def _report(reader: Reader, chosen: Choice) -> list[dict[str, Any]]:
    return reader.report(by=KEYS, metrics=segment_table.METRICS, since=chosen.since, until=chosen.until).to_dicts()


def _verdicts(reader: Reader) -> list[dict[str, Any]]:
    return reader.frame(files.question("page_verdicts"), {"lever": LEVER}).to_dicts()


def _gains(reader: Reader, chosen: Choice) -> list[dict[str, Any]]:
    asked = {"lever": LEVER, "metric": GAIN_METRIC, "since": chosen.since, "until": chosen.until}
    return reader.frame(files.question("page_gains"), asked).to_dicts()


def _given(keys: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value or "" for key, value in keys.items()}


def _missing(rows: Sequence[Row]) -> list[Any]:
    """The metrics that some segment on the page lacks: each is explained once."""
    cells = [cell for row in rows for pair in row.cells for cell in (pair, pair.beside) if cell is not None and cell.value is None]
    return list({cell.metric.name: cell.metric for cell in cells}.values())


def _figures(reader: Reader, shown: Choice, turned: Sequence[Flip]) -> list[Figure]:
    """The chosen segment's charts; none where no request began and nothing was compared."""
    asked = {"lever": LEVER, "since": shown.since, "until": shown.until}
    keys = {key: shown.keys.get(key) for key in KEYS}
    buckets = reader.frame(files.question("page_buckets"), {**asked, **keys, "width_s": shown.width_s}).to_dicts()
    named = {**asked, "segment": shown.segment, "metric": GAIN_METRIC}
    effects = reader.frame(files.question("page_effects"), named).to_dicts()
    if not buckets and not effects:
        return []
    marks = [flip.decided_at for flip in turned if shown.since <= flip.decided_at <= shown.until]
    return segment_charts.figures(buckets, effects, marks, timedelta(seconds=shown.width_s), Period(shown.since, shown.until))


def _period(here: Arriving, chosen: Choice, now: datetime) -> str:
    """The table's period in words; it ends at the newest data, which may be long ago."""
    seen = now if chosen.since.astimezone(UTC).date() == now.astimezone(UTC).date() else chosen.since - timedelta(days=1)
    start, end = theme.clock(chosen.since, seen), theme.clock(chosen.until, seen)  # both with the date, or neither
    return f"{start} to {end}" + (", where the newest data ends" if here.css == "bad" else "")
