"""The configuration in, what every task of `leverwatch work` goes by out."""

from __future__ import annotations

from pathlib import Path

import msgspec

from leverwatch import policy_sources
from leverwatch.config import Config, ConfigError
from leverwatch.holdout_settings import stated
from leverwatch.store_settings import NAMES_A_LAKE
from leverwatch.switchback_settings import ScheduleFile, watched
from leverwatch.work_tasks import Work, options_of
from pipeline import metrics as metric_rows

KEPT = "work"  # below the data folder: what a machine keeps of levers between rounds; made anew where it is gone


def work_of(config: Config, folder: Path) -> Work:
    """What tasks go by.

    Raises:
        ConfigError: the configuration names no lake.
        PolicyError, ScheduleError: a policy or the schedule cannot be used.
    """
    if not config.store.is_lake:
        msg = f"[store] kind = 'embedded' needs no `leverwatch work`: `leverwatch serve` does it all; {NAMES_A_LAKE}"
        raise ConfigError(msg)
    policies = [source.policy for source in policy_sources.sources(config.alerts.policies)]
    schedule = ScheduleFile(Path(config.switchback.file) if config.switchback.file else None)
    return Work(
        uri=config.store.uri,
        options=options_of(config.store.options),
        edges=config.segments.edges(),
        slo=metric_rows.Slo(**msgspec.structs.asdict(config.slo)),
        by_tenant=config.segments.judge_by_tenant,
        schedule=schedule.current(),
        watched=watched(policies),
        holdouts=tuple(stated(config.holdouts)),
        kept=str(folder / KEPT),
        memory_limit=config.store.memory_limit,
        part_spans=config.store.part_spans,
    )
