"""How the documents' commands are told apart, and which of them a test will not start."""

from __future__ import annotations

from pathlib import Path

import docs_blocks
import docs_units
import docs_unrun
import pytest
from docs_blocks import Block
from docs_sandbox import Place
from docs_units import Unit

HERE = Place(Path("/nowhere"), "http://127.0.0.1:1")


def units(language: str, text: str) -> list[Unit]:
    return docs_units.units(Block("docs/page.md", 1, language, text, is_fenced=True))


def test_a_prompt_begins_a_command_and_the_line_below_is_what_is_shown() -> None:
    found = units("console", '$ leverwatch sql "select 1 as one"\none\n---\n$ echo a \\\n  b\n')
    assert [(one.text, one.shown) for one in found] == [('leverwatch sql "select 1 as one"', "one"), ("echo a \\\n  b", "")]


def test_a_quote_that_is_open_goes_on_with_the_command() -> None:
    (found,) = units("console", '$ leverwatch sql "select 1\n  as one"\none\n')
    assert (found.text, found.shown) == ('leverwatch sql "select 1\n  as one"', "one")


def test_lines_are_commands_of_their_own_and_what_hangs_together_is_one() -> None:
    assert [one.text for one in units("sh", "# first\necho a\n\necho b \\\n  c\n")] == ["echo a", "echo b \\\n  c"]
    for together in ("if true; then\n  echo a\nfi\n", "cat > x <<EOF\ntext\nEOF\n"):
        assert [one.text for one in units("sh", together)] == [together]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("leverwatch policy show x > mine.toml  # why", (["leverwatch", "policy", "show", "x"], "mine.toml")),
        ('leverwatch sql "select 1 > 2"', (["leverwatch", "sql", "select 1 > 2"], "")),
        ('leverwatch sql "select 1" | head -1', None),
        ("leverwatch silence end $ID", None),
        ("echo leverwatch", None),
    ],
)
def test_one_command_of_ours_needs_no_shell(text: str, plain: tuple[list[str], str] | None) -> None:
    assert Unit("page:1", text).plain == plain


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rm -rf data", "starts rm"),
        ("FEW=1 leverwatch doctor && reboot", "starts reboot"),
        ("cat ~/.netrc", "reaches beyond its folder: ~/.netrc"),
        ("cat ../README.md", "reaches beyond its folder: ../README.md"),
        ("leverwatch load /srv/trace.jsonl", "reaches beyond its folder: /srv/trace.jsonl"),
        ("curl https://example.org/", "asks a server that is not ours"),
        ("curl http://127.0.0.1:8080/healthz", ""),
        ("leverwatch snapshot /backup/today --data /var/lib/leverwatch", ""),
        ('leverwatch sql "select 1 / 2"', ""),
    ],
)
def test_what_a_command_may_not_start_read_or_ask_is_said(text: str, said: str) -> None:
    assert HERE.objection(Unit("page:1", text)) == said or HERE.objection(Unit("page:1", text)).startswith(f"{said},")


def test_a_command_with_an_objection_is_not_run() -> None:
    with pytest.raises(ValueError, match="starts rm"):
        HERE.run(Unit("page:1", "rm -rf data"))


def test_a_comment_above_a_block_says_why_it_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docs_blocks, "text_of", lambda _: "<!-- not run: a fragment -->\n```sql\nselect\n```\n\n    indented\n")
    said, indented = docs_blocks.blocks.__wrapped__("docs/page.md")
    assert (said.language, said.why_not, indented.is_fenced) == ("sql", "a fragment", False)


def test_a_server_and_an_engine_are_not_run_and_a_question_is() -> None:
    assert docs_unrun.why_not("leverwatch serve --data x")
    assert docs_unrun.why_not("cat > o.yaml <<EOF\na: 1\nEOF\ntrtllm-serve MODEL\n")
    assert not docs_unrun.why_not("leverwatch effects --lever speculation")
    assert docs_unrun.right("leverwatch doctor --since 15m") == (0, 1, 3)
