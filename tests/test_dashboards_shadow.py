"""A flip of a policy in shadow is marked by a word wherever pages list flips, and is nobody's alarm."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
from dashboards_rows import NOW
from jinja2 import Environment, PackageLoader, StrictUndefined

from dashboards import flips

LIST = "{% from 'flips.html' import flip_list %}{{ flip_list(flips, 'none') }}"


class Reader:
    """A reader of one flip."""

    def frame(self, *_: Any) -> pl.DataFrame:
        row = {"flip_id": "f", "policy": "p", "lever": "speculation", "segment": '{"model":"m"}', "state_before": "on", "reason": "so"}
        row |= {"state_after": "off_recommended", "decided_at": NOW, "notice": json.dumps({}), "receiver": None, "is_shadow": True}  # type: ignore[dict-item]
        return pl.DataFrame([row])


def _listed(told: list[flips.Flip]) -> str:
    return Environment(loader=PackageLoader("dashboards"), autoescape=True, undefined=StrictUndefined).from_string(LIST).render(flips=told)


def test_a_flip_of_a_policy_in_shadow_says_so_in_the_list_of_flips() -> None:
    told = flips.newest(Reader(), NOW)  # type: ignore[arg-type]
    assert [(flip.is_shadow, flip.css) for flip in told] == [(True, "quiet")]
    listed = _listed(told)
    assert '<span class="badge quiet">shadow</span>' in listed
    assert "nobody is told: the policy is in shadow" in listed
