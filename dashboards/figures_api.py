"""The URL of a figure in, a file to take away out: `/figure/<page>/<key>.svg`, `.png` or `.csv`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from fastapi import APIRouter, Request, Response

from dashboards import answers, figure_files, page_list
from dashboards.easel import DrawingError
from dashboards.page import Asked
from dashboards.studio import CrowdedError, Studio
from pipeline.metrics import UnknownMetricError

LATER = "ask again later; the page shows its numbers, and it is a file as .csv"


def router(studio: Studio, asking: Callable[[Request, str], Asked]) -> APIRouter:
    """`/figure/{page}/{name}`; what has to be drawn takes a place before anything is asked of the store, or is told to come again."""
    routes = APIRouter()

    @routes.get("/figure/{page}/{name}", include_in_schema=False)
    def figure(page: str, name: str, request: Request) -> Response:
        key, _, kind = name.rpartition(".")
        try:
            with nullcontext() if kind == "csv" else studio.place():
                return _answered(page, key, kind, studio, lambda path: asking(request, path))
        except (page_list.UnknownPageError, UnknownMetricError, ValueError) as error:
            return answers.error("invalid", str(error.args[0]) if error.args else str(error))
        except CrowdedError as error:
            return answers.error("busy", str(error), LATER, 503, error.retry_after_s)
        except DrawingError as error:
            return answers.error("not_drawn", str(error), LATER, 503, int(studio.limits.failed_s))

    return routes


def _answered(page: str, key: str, kind: str, studio: Studio, asking: Callable[[str], Asked]) -> Response:
    of = page_list.by_key(page)
    listed = of.figures(asking(of.path)) if of.figures else ()
    found = next((one for one in listed if one.key == key), None)
    if found is None:
        said = f"{page} has no figure {key[:40]!r} now; it has: {', '.join(one.key for one in listed) or 'none'}"
        return answers.error("not_found", said, status=404)
    return answers.download(figure_files.file(found, kind, studio), figure_files.KINDS[kind], f"leverwatch-{page}-{key}.{kind}")
