"""The metrics of one page in, the replica that the process behind it says it is out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec
from prometheus_client import Metric

Form = Literal["text", "hexadecimal"]


class OwnName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The metric whose label says who the process of a page is, and the form that the label has; spans have the number in decimal.

    The label names the whole page: lines of the engine within the process do not carry it.
    """

    metric: str
    label: str
    form: Form = "text"

    def read(self, text: str) -> str:
        """The replica as requests call it, empty where the text has not the form."""
        if self.form == "text":
            return text
        try:
            return str(int(text, 16)) if text.isalnum() else ""
        except ValueError:
            return ""


def own_name(metrics: Iterable[Metric], names: Sequence[OwnName]) -> tuple[str, str]:
    """The replica that a page names as its own and the label that does; both empty where it names none, or several."""
    of_metric = {name.metric: name for name in names}
    said = {
        (of_metric[metric.name].read(line.labels.get(of_metric[metric.name].label, "")), of_metric[metric.name].label)
        for metric in metrics
        if metric.name in of_metric
        for line in metric.samples
    }
    found = {pair for pair in said if pair[0]}
    return next(iter(found)) if len(found) == 1 else ("", "")
