"""An application in, made-up calls to every route of its OpenAPI description out, each answer held to what the description says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import CHECKS

from dashboards.security import HEADERS

# A documented 503 or 504 is no fault, and what is documented is checked; which names and conditions there are no schema can say.
LEFT_OUT = ("not_a_server_error", "positive_data_acceptance")
MODES = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
EVERYTHING = list(HealthCheck)


def faults(application: Any, examples: int, *, first_seed: int = 1, only: str = "") -> Iterator[str]:
    """A sentence per kind of fault and route; `examples` calls to each route with values that it takes, and as many with others."""
    description = schemathesis.openapi.from_asgi("/openapi.json", application)
    for found in description.get_all_operations():
        operation = found.ok()
        if only in operation.label:
            for mode in MODES:
                yield from _faults(operation, mode, examples, first_seed)


def _faults(operation: Any, mode: Any, examples: int, first_seed: int) -> Iterator[str]:
    told: dict[str, str] = {}

    @seed(first_seed)
    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=EVERYTHING, phases=[Phase.generate])
    @given(case=operation.as_strategy(generation_mode=mode))
    def hold(case: Any) -> None:
        response = case.call()
        lacking = [name for name in HEADERS if name.lower() not in response.headers]
        if lacking:
            told["headers"] = f"{operation.label}: {', '.join(lacking)} are not in an answer with {response.status_code}"
        try:
            case.validate_response(response, excluded_checks=[CHECKS.get_one(name) for name in LEFT_OUT])
        except BaseExceptionGroup as failures:
            for failure in failures.exceptions:
                told.setdefault(type(failure).__name__, f"{operation.label}: {failure}: {case.as_curl_command()}")

    try:
        hold()
    except Unsatisfiable:  # nothing can be wrong with a call that has no parameters
        return
    yield from told.values()
