"""A request to the API in, a refusal out where a parameter of it is unknown: a misspelled one must not be left out in silence."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response

from dashboards import answers


class UnknownParameterError(ValueError):
    """A parameter of the address that its path does not take; says which are taken."""


def only_known(request: Request) -> None:
    """Raises UnknownParameterError where a path of the API is asked for with a parameter that it does not have."""
    if not request.url.path.startswith("/api/"):
        return
    taken = sorted(field.alias for field in request.scope["route"].dependant.query_params)
    for name in request.query_params:
        if name not in taken:
            msg = f"parameter {name!r} is unknown; known: {', '.join(taken) or 'none'}"
            raise UnknownParameterError(msg)


def refuse_unknown(application: FastAPI) -> None:
    """Answers with the sentence where `only_known` refuses."""

    @application.exception_handler(UnknownParameterError)
    def refused(_request: Request, error: UnknownParameterError) -> Response:
        return answers.error("invalid", str(error))
