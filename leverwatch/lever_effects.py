"""A store and a question about a lever in, its effects out: those that were judged, or of groups of segments, standardized, from cells."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import polars as pl

from alerts.levers import LEVERS, unknown
from pipeline import believed, descriptive_effects, lever_cells, standardized_effects
from pipeline.compare import WINDOW_BLOCKS
from pipeline.measure import BLOCK_S
from pipeline.segments import keys_for
from pipeline.standardized_effects import OFF_IN_PLACE, TREATED, Window
from queries import descriptive, files
from queries.report import ReportError
from queries.store import Store

BLOCK = timedelta(seconds=BLOCK_S)
CYCLE = timedelta(days=1)
EARLIEST = datetime(1971, 1, 1, tzinfo=UTC)  # a period's window begins a while before it
TURNED_AT = (
    pl.when(pl.col("turned_blocks") > 0)
    .then(pl.col("until") - pl.duration(seconds=BLOCK_S * pl.col("turned_blocks") * pl.col("blocks_together").fill_null(1)))
    .alias("turned_at")
)
LIMIT_SUMS = 1_000_000  # strata times blocks that are in memory together


def effects(
    store: Store, lever: str, by: Sequence[str] = (), since: datetime | None = None, until: datetime | None = None, *, total: bool = False
) -> pl.DataFrame:
    """Effects of a lever, a row per segment and metric: with `by` or `total` standardized over the judging segments beneath.

    Without either and without a period the newest that were judged, with `turned_at`, the moment since which the lever may be worse, and
    what `disabled_in_place` is against control. `until` is the end of the newest block where it is not given, `since` 24 blocks before.

    Raises:
        ReportError: there is no such lever, no such key, or the period is empty or too long.
    """
    known(lever, by, (*keys_for(lever), "tenant", *descriptive.KEYS))
    if total and by:
        msg = "total is the group of all segments: it is taken without keys"
        raise ReportError(msg)
    if any(key in descriptive.KEYS for key in by):
        return _descriptive(store, lever, by, window(store, lever, since, until))
    if by or total or since or until:
        return standardized(store, lever, tuple(by) if by or total else None, window(store, lever, since, until))
    newest = believed.with_belief(store.frame(files.question("effect_newest"), {"lever": lever})).with_columns(TURNED_AT)
    off = _off_in_place(store, lever)
    told = off.select(name for name in off.columns if name in newest.columns)
    return newest if off.is_empty() else pl.concat([newest, told], how="diagonal_relaxed")


def break_even(store: Store, lever: str, by: Sequence[str] = ()) -> pl.DataFrame:
    """Where a lever stops paying, one row per segment and key, and behind it the one before that went stale; of segments with keys `by`.

    Raises:
        ReportError: there is no such lever, or no such key of its segments.
    """
    known(lever, by, (*keys_for(lever), "tenant"))
    rows = store.frame(files.question("break_even_newest"), {"lever": lever})
    for key in by:
        rows = rows.filter(pl.col("segment").str.json_path_match(f"$.{key}").is_not_null())
    return rows


def _off_in_place(store: Store, lever: str) -> pl.DataFrame:
    """What the lever costs where it is deployed and off, by judging segment."""
    segments = store.frame(files.question("effect_off_in_place"), {"lever": lever})["segment"].to_list()
    return standardized(store, lever, None, window(store, lever, None, None), (OFF_IN_PLACE,), segments) if segments else _none()


def standardized(
    store: Store,
    lever: str,
    by: Sequence[str] | None,
    asked: Window | None,
    arms: Sequence[str] = (TREATED, OFF_IN_PLACE),
    segments: Sequence[str] | None = None,
) -> pl.DataFrame:
    """The effects of arms by group, from cells; `by` None tells every judging segment apart. `segments` None: all of the lever."""
    if asked is None:
        return pl.DataFrame(schema=standardized_effects.SCHEMA)
    period = {"lever": lever, "since": asked.since - BLOCK * WINDOW_BLOCKS, "until": asked.until}
    cells = store.frame(files.question("effect_cells"), period | {"metrics": [*lever_cells.RAW], "segments": segments})
    present = [arm for arm in arms if arm in cells["arm"]]
    among = lever_cells.groups(cells.filter(pl.col("arm").is_in([*arms, "control"]))["segment"].unique().to_list(), by)
    _refuse_many(len(among.strata), cells["block_started_at"].n_unique())
    requests, said = weighed(store, lever, asked)
    weight = lever_cells.weights(requests, among)
    told = Window(asked.since, asked.until, said)
    frames = [standardized_effects.effects(cells, weight, among, told, lever, arm) for arm in present]
    return pl.concat(frames).sort("segment", "metric", "arm_a", descending=[False, False, True]) if frames else _none()


def weighed(store: Store, lever: str, asked: Window) -> tuple[dict[str, float], str | None]:
    """(the requests of each segment that it counts by, a word where they are not of a whole day before the window)."""
    said: str | None
    for since, until in ((asked.since - CYCLE, asked.since), (asked.since, asked.until)):
        found = store.frame(files.question("effect_weights"), {"lever": lever, "since": since, "until": until})
        if found.is_empty():
            continue
        if until > asked.since:
            said = "each segment counts by its requests of the window itself: nothing is known of the day before"
        else:
            hours = (until - min(found["first_at"].to_list())) / timedelta(hours=1)
            is_whole = hours > CYCLE / timedelta(hours=1) - 1
            said = (
                None if is_whole else f"each segment counts by its requests of the {hours:.1f} h before the window: no whole day is known"
            )
        return dict(found.select("segment", "requests").iter_rows()), said
    return {}, None


def window(store: Store, lever: str, since: datetime | None, until: datetime | None) -> Window | None:
    """The whole blocks of a period; None where nothing is known of the lever."""
    if until is None:
        until = store.rows(files.question("effect_end"), {"lever": lever, "block_s": BLOCK_S})[0]["until"]
        if until is None:
            return None
    if until < EARLIEST:
        msg = f"until {until.isoformat()} is before anything that is kept: a moment from {EARLIEST.isoformat()} on is taken"
        raise ReportError(msg)
    since = until - BLOCK * WINDOW_BLOCKS if since is None else max(since, EARLIEST)
    if since >= until:
        msg = f"the period from {since.isoformat()} to {until.isoformat()} is empty: since is to be before until"
        raise ReportError(msg)
    return Window(since, until)


def known(lever: str, by: Sequence[str], keys: Sequence[str]) -> None:
    """Raises ReportError for a lever or a key that there is not."""
    if lever not in LEVERS:
        raise ReportError(unknown("lever", lever, LEVERS))
    for key in by:
        if key not in keys:
            raise ReportError(unknown("key", key, keys))


def _descriptive(store: Store, lever: str, by: Sequence[str], asked: Window | None) -> pl.DataFrame:
    if asked is None:
        return _none()
    after = [key for key in by if key in descriptive.KEYS]
    sums = descriptive.sums(store, lever, asked.since, asked.until)
    return descriptive_effects.effects(sums, by, after, lever, asked.since, asked.until)


def _refuse_many(strata: int, blocks: int) -> None:
    if strata * blocks > LIMIT_SUMS:
        msg = f"{strata} segments times {blocks} blocks are more than {LIMIT_SUMS:,}, which are added up at once; ask for a shorter period"
        raise ReportError(msg)


def _none() -> pl.DataFrame:
    return pl.DataFrame(schema=standardized_effects.SCHEMA)
