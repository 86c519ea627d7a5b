"""The documents in, their code blocks out: who wrote what language on which line."""

from __future__ import annotations

import functools
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[1]
LANGUAGES = ("console", "sh", "sql", "python", "toml", "json", "yaml", "go", "text")
_NOT_RUN = re.compile(r"<!-- not run: (?P<why>.+?) -->")
# Records and the changelog tell of what was: they hold links and words, and no block that is to run today.
_SKIPPED = ("docs/adr/",)


@dataclass(frozen=True)
class Block:
    """A code block of a page. `line` is that of its fence, `why_not` what a comment above it says of why it is not run."""

    page: str
    line: int
    language: str
    text: str
    is_fenced: bool
    why_not: str = ""

    @property
    def place(self) -> str:
        """Page and line, as errors name them."""
        return f"{self.page}:{self.line}"


@functools.cache
def pages() -> tuple[str, ...]:
    """The Markdown files of the repository, as seen from its root."""
    found = [*ROOT.glob("*.md"), *(path for name in ("docs", "deploy", "benchmarks") for path in (ROOT / name).rglob("*.md"))]
    return tuple(sorted(str(path.relative_to(ROOT)) for path in found))


@functools.cache
def text_of(page: str) -> str:
    """A page's Markdown."""
    return (ROOT / page).read_text(encoding="utf-8")


@functools.cache
def blocks(page: str) -> tuple[Block, ...]:
    """The code blocks of a page, in order."""
    if page.startswith(_SKIPPED):
        return ()
    found, before = [], ""
    for token in MarkdownIt("commonmark").enable("table").parse(text_of(page)):
        if token.type in ("fence", "code_block") and token.map:
            said = _NOT_RUN.search(before)
            language = token.info.strip() if token.type == "fence" else ""
            body = textwrap.dedent(token.content)
            found.append(Block(page, token.map[0] + 1, language, body, token.type == "fence", said["why"] if said else ""))
        before = token.content if token.type == "html_block" else ""
    return tuple(found)


def of(*languages: str) -> list[Block]:
    """Every block in these languages."""
    return [block for page in pages() for block in blocks(page) if block.language in languages]
