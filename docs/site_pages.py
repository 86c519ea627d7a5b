"""The list of pages in `docs/README.md` in, the site's navigation out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

FOLDERS = {"docs", "benchmarks", "deploy"}
PATTERNS = ["*.md", *(f"{folder}/**.md" for folder in sorted(FOLDERS))]
LIST = "docs/README"
# Pages that are listed and not written yet: their lines are left out of the site until they are there.
AWAITED: frozenset[str] = frozenset()
_ITEM = re.compile(r"- \[(?P<title>[^]]+)\]\((?P<path>[^)#]+)\)\n")


def navigated(docname: str, text: str, root: Path) -> str:
    """A page's Markdown with the parts of the navigation that hang from it, without items whose page is awaited."""
    if docname == LIST:
        return _ITEM.sub(lambda item: "" if _is_awaited(item["path"], root) else item[0], text)
    if docname == "README":
        return text + "".join(_trees((root / f"{LIST}.md").read_text(encoding="utf-8"), root))
    return text + _tree("", ["[0-9]*"], "glob") if docname == "docs/adr/README" else text


def target(path: str) -> str:
    """A path of the list, as seen from the repository."""
    return path.removeprefix("../") if path.startswith("../") else f"docs/{path}"


def _is_awaited(path: str, root: Path) -> bool:
    return target(path) in AWAITED and not (root / target(path)).exists()


def _trees(listed: str, root: Path) -> Iterator[str]:
    """A tree of pages for each heading of the list; the list itself stands first."""
    yield _tree("", [LIST])
    for section in listed.split("\n## ")[1:]:
        there = [item for item in _ITEM.finditer(section) if not _is_awaited(item["path"], root) and target(item["path"]) != "README.md"]
        pages = [f"{item['title']} <{PurePosixPath(target(item['path'])).with_suffix('')}>" for item in there]
        yield _tree(section.partition("\n")[0], pages)


def _tree(caption: str, pages: list[str], *options: str) -> str:
    head = ["hidden", *options, *([f"caption: {caption}"] if caption else [])]
    return "\n".join(["", "```{toctree}", *(f":{line}" if ": " in line else f":{line}:" for line in head), "", *pages, "```", ""])
