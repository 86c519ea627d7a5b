"""The hours of a round in, each made anew by one task or, where it holds more than one is to read, by many, out.

A large hour takes steps, and the hours of a round take each of them together: what links its traces, rows sorted by part, parts read,
shares settled, the cells of no one replica added up, and, by whoever drives, one commit a table. An hour of which a task fails is left as
it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from leverwatch import work_tasks
from leverwatch.work_pool import Pool
from leverwatch.work_tasks import Work
from pipeline import hour_parts, hour_sorting
from pipeline.hour_job import Told
from pipeline.hour_parts import Made, Read, Shared
from pipeline.hour_sorting import Sorted, Whole
from queries import lake_staging
from queries.lake import Lake, LakeError
from queries.lake_tables import hour_name

Fail = Callable[[str, str], None]


@dataclass(slots=True)
class _Large:
    """A large hour as far as it has come."""

    hour: datetime
    parts: int
    whole: Whole | None = None
    sources: list[Sorted] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    made: list[Made] = field(default_factory=list)

    def share(self) -> Shared:
        """Who is settled together: about as many shares as parts were read."""
        whole = self.whole
        if whole is None:
            msg = f"hour {self.hour.isoformat()} is shared out before it was read"
            raise ValueError(msg)
        most = -(-sum(read.requests.rows for read in self.reads) // self.parts)
        return hour_parts.share(whole, self.sources, self.reads, most)


@dataclass(slots=True)
class Hours:
    """Makes hours; `fail` is told of each that could not be made, and why, and `count` of the processor seconds of each task that ended."""

    work: Work
    pool: Pool
    cutoff: datetime
    fail: Fail
    count: Callable[[float], None]
    _failed: set[datetime] = field(default_factory=set)

    def made(self, moments: Sequence[datetime]) -> Iterator[Told]:
        """Makes hours anew, those of one task first; what became of each, as it ends. Raises LakeError."""
        lake = self.work.lake()
        large = [_Large(moment, parts) for moment, parts in parts_of(lake, moments, self.work.part_spans).items() if parts > 1]
        several = {one.hour for one in large}
        small = {moment: [(self.work, moment, self.cutoff)] for moment in moments if moment not in several}
        yield from (told for _, told in self._each(work_tasks.hour, small))
        try:
            yield from self._in_parts(lake, {one.hour: one for one in large})
        finally:
            self._drop(lake, large)

    def _in_parts(self, lake: Lake, large: Mapping[datetime, _Large]) -> Iterator[Told]:
        links = {hour: [(self.work, hour, one.parts)] for hour, one in large.items()}
        for hour, whole in self._each(work_tasks.link, links):
            large[hour].whole = whole
        sorts = {
            hour: [(self.work, one.whole, *group) for group in hour_sorting.groups(lake, hour, self.work.part_spans)]
            for hour, one in self._going(large)
        }
        for hour, source in self._each(work_tasks.sort, sorts):
            large[hour].sources.append(source)
        reads = {
            hour: [(self.work, one.whole, part, tuple(one.sources), self.cutoff) for part in range(one.parts)]
            for hour, one in self._going(large)
        }
        for hour, read in self._each(work_tasks.read, reads):
            large[hour].reads.append(read)
        shared = {hour: one.share() for hour, one in self._going(large)}
        shares = {hour: [(self.work, one, number, self.cutoff) for number in range(one.count)] for hour, one in shared.items()}
        for hour, made in self._each(work_tasks.settle, shares):
            large[hour].made.append(made)
        sums = {hour: [(self.work, hour, tuple(one.made))] for hour, one in self._going(large)}
        for hour, cells in [*self._each(work_tasks.add, sums)]:
            try:
                yield hour_parts.put_in_place(lake, hour, large[hour].made, cells)
            except LakeError as error:
                self._fail(hour, f"LakeError: {error}")

    def _going(self, large: Mapping[datetime, _Large]) -> list[tuple[datetime, _Large]]:
        return [(hour, one) for hour, one in large.items() if hour not in self._failed]

    def _drop(self, lake: Lake, large: Sequence[_Large]) -> None:
        """Deletes what tasks left for each other. What stays goes with the next cleaning of its table."""
        staged = [file for one in large if one.whole for file in hour_parts.left(one.whole, one.sources, one.reads, one.made)]
        with suppress(LakeError):
            lake_staging.drop(lake, staged)

    def _each(self, function: Callable[..., Any], tasks: Mapping[datetime, Sequence[tuple[Any, ...]]]) -> Iterator[tuple[datetime, Any]]:
        """(the hour of a task, its answer) of each task that ends well; the hour of one that does not has failed."""
        hours = {id(task): hour for hour, some in tasks.items() for task in some}
        for outcome in self.pool.run(function, [task for some in tasks.values() for task in some]):
            hour = hours[id(outcome.task)]
            if outcome.error:
                self._fail(hour, outcome.error)
            else:
                self.count(outcome.answer.cpu_s)
                yield hour, outcome.answer

    def _fail(self, hour: datetime, error: str) -> None:
        self._failed.add(hour)
        self.fail(hour.isoformat(), error)


def parts_of(lake: Lake, hours: Sequence[datetime], part_spans: int) -> dict[datetime, int]:
    """How many tasks read each of these hours, by the spans and imported requests that the lake has of it."""
    rows = Counter[str]()
    for table in ("spans", "imported_requests"):
        for file in lake.files(table):
            rows[file.hour] += file.rows
    return {hour: max(1, -(-rows[hour_name(hour)] // part_spans)) for hour in hours}
