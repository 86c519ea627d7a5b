"""Where to go afterwards in, the page that asks for a token out."""

from __future__ import annotations

from dashboards import templating


def draw(following: str, said: str) -> str:
    """The form: `following` is the path it leads to, `said` why the last token was not taken (empty: none was)."""
    return templating.render("login.html", following=following, said=said)
