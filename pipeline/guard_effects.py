"""Effects and the cells behind them in, the same effects out with the trap that most requests fell into which they are made of."""

from __future__ import annotations

import polars as pl

from pipeline.arithmetic import columns_of
from pipeline.guard_cells import touching, upstreams
from pipeline.impossible import FLAG
from pipeline.metrics import by_name, of_quantile

REQUESTS = "requests"
ALSO_OF = {"net_itl_s": ("ttft_s",), "net_itl_gain": ("ttft_s",)}  # what a contrast is made of beside its metric's own columns
TOLD_SHARE = 0.1  # from this share of an arm's requests on the effect's note says it


def with_traps(effects: pl.DataFrame, cells: pl.DataFrame) -> pl.DataFrame:
    """The effects with `trap`, `upstream`, and `trapped_share`: of the arm that is worse off, the share of requests that fell in any.

    `cells` has the sums of the window per lever, segment, arm and metric. Effects that no trap touches are left as they are.
    """
    counted = cells.filter(pl.col("metric").str.starts_with(FLAG))
    if counted.is_empty() or effects.is_empty():
        return effects
    keys = ["lever", "segment", "arm"]
    asked = cells.filter(pl.col("metric") == REQUESTS).group_by(keys).agg(pl.col("n").sum().alias("requests"))
    shares = counted.group_by([*keys, "metric"]).agg(pl.col("n").sum()).join(asked, on=keys)
    shares = shares.select(*keys, pl.col("metric").alias("trap"), (pl.col("n") / pl.col("requests")).alias("share"))
    arms = pl.concat([effects.select("lever", "segment", "metric", pl.col(arm).alias("arm")) for arm in ("arm_a", "arm_b")])
    fell = arms.drop_nulls("arm").join(_touches(effects["metric"].unique().to_list()), on="metric").join(shares, on=[*keys, "trap"])
    by_arm = fell.sort("share", descending=True).group_by(["lever", "segment", "metric", "arm"], maintain_order=True)
    worst = by_arm.agg(pl.col("trap").first(), pl.col("share").sum().clip(0.0, 1.0).alias("trapped_share"))
    worst = worst.sort("trapped_share", descending=True).unique(["lever", "segment", "metric"], keep="first", maintain_order=True)
    named = pl.col("trap").str.strip_prefix(FLAG)
    worst = worst.drop("arm").with_columns(named.alias("trap"), named.replace_strict(upstreams(), default=None).alias("upstream"))
    joined = effects.join(worst, on=["lever", "segment", "metric"], how="left", maintain_order="left")
    return joined.with_columns(pl.coalesce("note", _note()).alias("note"))


def _touches(metrics: list[str]) -> pl.DataFrame:
    """(metric, trap): the pseudo-metrics of traps that spoil what a metric is made of."""
    rows = [
        (metric, trap)
        for metric in metrics
        for trap in touching(frozenset((*columns_of(by_name()[of_quantile(metric)]), *ALSO_OF.get(metric, ()))))
    ]
    return pl.DataFrame(rows, schema={"metric": pl.String, "trap": pl.String}, orient="row")


def _note() -> pl.Expr:
    upstream = pl.when(pl.col("upstream").is_not_null()).then(pl.format(" ({})", "upstream")).otherwise(pl.lit(""))
    percent = (pl.col("trapped_share") * 100).round(0).cast(pl.Int64, strict=False)
    told = pl.format("{} % of its requests fell into the trap {}{}", percent, "trap", upstream)
    return pl.when(pl.col("trapped_share") >= TOLD_SHARE).then(told)
