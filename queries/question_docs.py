"""Investigations in, the page that lists them out: `docs/sql.md`."""

from __future__ import annotations

from queries.described import functions
from queries.question_values import Parameter
from queries.questions import Question, investigations

_HEAD = """# Asking by SQL

Made from `queries/sql/ask_*.sql` and `queries/functions.toml` by `make golden`; change those, not this page.

Any text can be asked: it only reads, in a process of its own that can neither write, nor reach a file or the network, nor hold up what
comes in ([record 007](adr/007-sql-in-a-child-process.md)). Tables are in seconds, bytes, tokens, ratios of 0 to 1 and UTC, answers of the
questions below in the units that they state; what is not known is null. What there is to ask, `GET /api/schema` and the side of the page
`/sql` say: tables, columns with their units, the metrics' definitions.

| where | how |
|---|---|
| a shell | `leverwatch sql "select ..."`, `leverwatch ask hot-replicas --param since=7d`, `leverwatch ask --list` |
| a browser | `/sql`: editor, completion (Ctrl-Space), form, chart, files; Ctrl-Enter runs, Esc stops |
| a link | `/sql?question=hot-replicas&p.since=7d`, `/sql?sql=select+1` |
| HTTP | `POST /api/sql` with `{sql, params, limit, limit_s, format, id}`; `GET`, `DELETE /api/sql/{id}` follow and stop it |
| Python | `leverwatch.connect(folder or address).sql("select ... where model = $m", {"m": "..."})` |

**Limits.** 10,000 rows unless more is asked for (`limit`, up to 1,000,000), 10 s (`limit_s`, up to `[sql] most_s`), 1 GiB, two statements
at a time. An answer that is cut has `truncated` and a `note`; a statement that ends at a limit says which and what to do: `time_limit`
(504), `memory_limit` (422), `too_large` (413), `busy` (429). One that is stopped, or whose caller hangs up, is `cancelled` (409).

**Parameters** are written `$name`. In a URL or on the command line a number, `true`, `false` and `null` are such, what stands in quotes
is text, and so is all else. The questions below say a kind: a `moment` is a time (ISO 8601), an age (`24h`, `7d`) or `now`.

**Files** of the page (`/answer.csv` and the like) put an apostrophe before text that a spreadsheet would run as a formula; JSON, Arrow,
Parquet and the API leave it as it is.

**Numbers in JSON** keep every digit, in the API, files, `leverwatch sql`, `leverwatch ask` and MCP. A whole number up to
64 bits is a JSON integer, whatever its type; beyond that, and where a DECIMAL has more digits than a double holds, it is text, which no
reader rounds. Readers that make a double of each number (JavaScript, older `jq`) round integers beyond 2^53:
ask them as `x::varchar`, or take Arrow, Parquet or CSV.

**Questions of one's own** are kept by the page, or by `POST /api/questions` with `{name, title, sql, params, created_by}`; every version
stays, in the table `saved_questions`. Where tokens are set, keeping and taking away needs one of `admin`, as all that changes state.

A link that another site leads to runs nothing unless somebody clicked it.
"""
_QUESTIONS = """
## Questions

Each takes `since`, from when on (a time, or an age before now), and `until`, up to when, exclusive; many take `model`, one model alone in
the place of every one. In brackets stand kind and default.
"""
_USUAL = {
    "since": "from when on; a time, or an age before now",
    "until": "up to when, exclusive",
    "model": "this model alone; every one where it is not given",
}


def page() -> str:
    """The page as Markdown."""
    parts = [_HEAD, _QUESTIONS]
    group = ""
    for question in investigations():
        if question.group != group:
            group = question.group
            parts.append(f"\n### {group}\n")
        parts.append(_question(question))
    parts.append("\n## Functions worth knowing\n\n| function | gives | example |\n|---|---|---|\n")
    parts.append("\n".join(f"| `{one.name}` | {one.what} | `{one.example.replace('|', chr(92) + '|')}` |" for one in functions()) + "\n")
    return "".join(parts)


def _question(question: Question) -> str:
    columns = "\n".join(f"| `{column.name}` | {column.unit} | {column.what} |" for column in question.columns)
    parameters = "; ".join(_parameter(one) for one in question.parameters)
    head = f"\n#### `{question.name}`: {question.title}\n\n{question.answers}\n\nParameters: {parameters}.\n\n"
    return f"{head}| column | unit | says |\n|---|---|---|\n{columns}\n"


def _parameter(one: Parameter) -> str:
    said = "" if _USUAL.get(one.name) == one.what else f": {one.what.replace(';', ',')}"
    return f"`{one.name}` ({one.kind}, {one.default if one.default is not None else 'null'}){said}"
