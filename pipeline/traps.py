"""What a trap is: a way in which senders' numbers go wrong, known by name, with who found it and the columns that it spoils."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import polars as pl

# What becomes of a value: set aside; kept, while what depends on it is not judged; or only told, since nothing of ours is made of it.
Severity = Literal["quarantined", "suspect", "noted"]

PAIRS = pl.List(pl.Struct({"key": pl.String, "value": pl.String}))  # a map column as Polars can look into it
REPOSITORIES = {
    "guidellm": "vllm-project/guidellm",
    "inference": "mlcommons/inference",
    "sglang": "sgl-project/sglang",
    "TensorRT-LLM": "NVIDIA/TensorRT-LLM",
    "vllm": "vllm-project/vllm",
    "vllm-ascend": "vllm-project/vllm-ascend",
}


@dataclass(frozen=True, slots=True)
class Trap:
    """A way for one request's values to be impossible: `when` is an expression over columns of `requests`, true where it fell in."""

    name: str
    columns: tuple[str, ...]
    when: pl.Expr
    reason: str
    upstream: str = ""
    severity: Severity = "quarantined"

    @property
    def told(self) -> str:
        """The reason with the upstream issue, as quarantine rows have it."""
        return _told(self.reason, self.upstream)


@dataclass(frozen=True, slots=True)
class SeriesTrap:
    """A way for a replica's time series to be wrong: `when` and `seen` are over the columns that `guard_series.compared` makes.

    `columns` are those of `requests` that values of these series end up in; `basis` says which of a replica's requests are meant: those
    whose value came `counted` from a series, or `any`.
    """

    name: str
    columns: tuple[str, ...]
    when: pl.Expr
    seen: pl.Expr
    reason: str
    upstream: str = ""
    severity: Severity = "quarantined"
    basis: Literal["counted", "any"] = "counted"

    @property
    def told(self) -> str:
        """The reason with the upstream issue, as quarantine rows have it."""
        return _told(self.reason, self.upstream)


def link(upstream: str) -> str:
    """The address of an issue or pull request such as `vllm#25780`; empty where none is named or its project is not known."""
    project, _, number = upstream.partition("#")
    return f"https://github.com/{REPOSITORIES[project]}/issues/{number}" if number and project in REPOSITORIES else ""


def _told(reason: str, upstream: str) -> str:
    return f"{reason} ({upstream})" if upstream else reason
