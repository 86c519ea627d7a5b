"""What could not be answered in, a page that says so out."""

from __future__ import annotations

from dashboards import templating
from dashboards.page import Asked

TITLES = {400: "This page can't be asked for so", 404: "There is no such page", 500: "This page could not be drawn"}


def draw(asked: Asked | None, status: int, said: str) -> str:
    """The page of a refusal or failure, without navigation where nobody knows what was asked; `said` is a sentence."""
    return templating.render("failed.html", asked=asked, title=TITLES.get(status, "This could not be answered"), said=said)
