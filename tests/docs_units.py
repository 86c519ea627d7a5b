"""Shell blocks in, what is run by itself out: one unit a command, with what the page shows of its output."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from docs_blocks import Block

PROMPT = "$ "
# Words after which another command begins, and those that only lead to one.
_JOINS = {"|", "||", "&&", ";", "&"}


@dataclass(frozen=True)
class Unit:
    """One command line, or a whole block that only makes sense together, and the first line of output that is shown of it."""

    place: str
    text: str
    shown: str = ""

    @property
    def words(self) -> list[str]:
        """The words of the shell, its operators among them, without comments."""
        lexer = shlex.shlex(self.text, posix=True, punctuation_chars="|&;<>()")
        lexer.whitespace_split = True
        return list(lexer)

    @property
    def programs(self) -> list[str]:
        """The programs that it starts."""
        found, is_first = [], True
        for word in self.words:
            if is_first and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*=.*", word):
                found.append(word)
                is_first = False
            elif word in _JOINS:
                is_first = True
        return found

    @property
    def plain(self) -> tuple[list[str], str] | None:
        """The words of one `leverwatch` command, and the file that its output goes to; nothing where it takes a shell to run it."""
        words, target = self.words, ""
        if words[-2:-1] == [">"]:
            words, target = words[:-2], words[-1]
        takes_a_shell = re.search(r"[$`]", self.text) or any(re.fullmatch(r"[|&;<>()]+", word) for word in words)
        return (words, target) if words[:1] == ["leverwatch"] and not takes_a_shell else None


def units(block: Block) -> list[Unit]:
    """The units of a `sh` or `console` block."""
    return list(_shown(block)) if block.language == "console" else list(_plain(block))


def parses(text: str) -> bool:
    """Whether bash takes it as a script."""
    return subprocess.run(["/bin/bash", "-n"], input=text, text=True, capture_output=True, check=False).returncode == 0


def _shown(block: Block) -> Iterator[Unit]:
    """A prompt begins a command, a backslash or an open quote goes on with it, all else is output."""
    lines = block.text.splitlines()
    while lines:
        line, command = lines.pop(0), []
        if not line.startswith(PROMPT):
            continue
        command.append(line.removeprefix(PROMPT))
        while lines and (command[-1].endswith("\\") or _is_open("\n".join(command))):
            command.append(lines.pop(0).removeprefix("> "))
        follows = lines[0] if lines and not lines[0].startswith(PROMPT) else ""
        yield Unit(block.place, "\n".join(command), follows)


def _is_open(text: str) -> bool:
    """Whether a quote is not closed yet."""
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return True
    return False


def _plain(block: Block) -> Iterator[Unit]:
    """A line each, with the lines that a backslash joins; all of it where lines do not parse by themselves."""
    joined = block.text.replace("\\\n", "\0").splitlines()
    lines = [line.replace("\0", "\\\n") for line in joined if line.strip() and not line.lstrip().startswith("#")]
    alone = all(map(parses, lines)) and not any("<<" in line for line in lines)
    yield from (Unit(block.place, line) for line in (lines if alone else [block.text]))
