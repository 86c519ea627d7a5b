"""The repository's Markdown in, the site out: `sphinx-build -c docs . build/site`, with the repository as the source folder.

So the pages' links hold on GitHub and on the site alike, whatever folder they lead to.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(Path(__file__).parent))

import site_pages  # noqa: E402  (beside this file, which is no package)

project = "Leverwatch"
author = "Leverwatch contributors"
release = version = re.findall(r'__version__ = "(.+)"', (ROOT / "leverwatch/version.py").read_text(encoding="utf-8"))[0]
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = site_pages.PATTERNS
exclude_patterns = sorted(path.name for path in ROOT.iterdir() if path.name not in site_pages.FOLDERS and path.suffix != ".md")
nitpicky = True
smartquotes = False  # text stands as it is written
highlight_language = "text"
myst_heading_anchors = 4
myst_heading_slug_func = "github"

html_theme = "furo"
html_title = f"Leverwatch {release}"
html_static_path = ["site.css"]
html_favicon = "../dashboards/assets/icon.svg"
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_domain_indices = False
html_use_index = False


def _navigated(app: Sphinx, docname: str, source: list[str]) -> None:
    source[0] = site_pages.navigated(docname, source[0], Path(app.srcdir))


def _reachable(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: object) -> None:
    """What the theme leaves out for those who use a keyboard or listen: wide blocks and tables take the focus, captions have a level."""
    body = str(context.get("body", "")).replace("<pre>", '<pre tabindex="0">')
    context["body"] = body.replace('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper')
    tree = str(context.get("furo_navigation_tree", ""))
    context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')


def _entered(app: Sphinx, error: Exception | None) -> None:
    """The site's root shows the first page."""
    if error is None:
        first = '<meta http-equiv="refresh" content="0; url=README.html"><a href="README.html">Leverwatch</a>'
        (Path(app.outdir) / "index.html").write_text(f"<!doctype html><title>Leverwatch</title>{first}\n", encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Puts the navigation into pages as they are read, and a first page beside them."""
    app.connect("source-read", _navigated)
    app.connect("html-page-context", _reachable, priority=900)  # behind the theme's own
    app.connect("build-finished", _entered)
