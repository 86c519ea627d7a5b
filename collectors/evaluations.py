"""Quality scores in (`gen_ai.evaluation.result` events, objects that were posted), checked evaluations out."""

from __future__ import annotations

import difflib
import functools
import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
import pyarrow as pa
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collectors import attributes, dialects

EVENT = "gen_ai.evaluation.result"
OWN = "leverwatch.evaluation."  # the prefix of attributes that say of an event's evaluation what its convention has no word for
LIMIT_ROWS, LIMIT_TEXT_CHARACTERS = 10_000, 1024
READ = ("gen_ai.evaluation.name", "gen_ai.evaluation.score.value", "gen_ai.response.id", "gen_ai.response.model", "gen_ai.request.model")
ID, TRACE_ID = re.compile(r"\S{1,256}"), re.compile(r"[0-9a-fA-F]{32}")
MICROSECOND = pa.timestamp("us", "UTC")


class EvaluationError(ValueError):
    """An evaluation cannot be taken; says which row and field, what came and what is taken."""


class Evaluation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One quality score. `setting` is the lever's, `original` means unoptimized; `n` is how many items the score is over.

    The same content is the same evaluation: `run_id`, `repeat` or `evaluated_at` tell repeats with one score apart.
    """

    suite: str
    score: float
    kind: Literal["perplexity", "public_benchmark", "product"] = "product"
    evaluated_at: datetime | None = None
    model: str | None = None
    lever: str | None = None
    setting: str | None = None
    run_id: str | None = None
    repeat: int | None = None
    better: Literal["higher", "lower"] | None = None
    n: int | None = None
    temperature: float | None = None
    request_id: str | None = None
    trace_id: str | None = None


def posted(body: bytes) -> list[Evaluation]:
    """The evaluations of a posted JSON object or array.

    Raises:
        EvaluationError: names the row and the field of the first that cannot be taken.
    """
    try:
        plain = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        msg = f"not JSON: {error}"
        raise EvaluationError(msg) from error
    rows = plain if isinstance(plain, list) else [plain]
    if len(rows) > LIMIT_ROWS:
        msg = f"{len(rows):,} evaluations; at most {LIMIT_ROWS:,} are taken at once"
        raise EvaluationError(msg)
    return [_checked(row, f"row {number}") for number, row in enumerate(rows)]


def of_event(said: Mapping[str, str], unix_nano: int, trace_id: str) -> Evaluation:
    """The evaluation that an event's attributes state; its explanation, a text, is not read.

    Raises:
        EvaluationError: as `posted`.
    """
    score = said.get("gen_ai.evaluation.score.value")
    if score is None:
        msg = f"an event {EVENT} without gen_ai.evaluation.score.value: a label alone is no score"
        raise EvaluationError(msg)
    row: dict[str, Any] = {
        "suite": said.get("gen_ai.evaluation.name"),
        "score": score,
        "evaluated_at": datetime.fromtimestamp(unix_nano / 1e9, UTC),
        "model": said.get("gen_ai.response.model") or said.get("gen_ai.request.model") or said.get("leverwatch.model"),
        "request_id": named if ID.fullmatch(named := said.get("gen_ai.response.id", "")) else None,  # a sentence there is no id
        "trace_id": trace_id if TRACE_ID.fullmatch(trace_id) else None,
    }
    own = {key.removeprefix(OWN): value for key, value in said.items() if key.startswith(OWN)}
    return _checked({key: value for key, value in (row | own).items() if value is not None}, f"an event {EVENT}", strict=False)


def of_spans(body: bytes, received_unix_nano: int) -> Iterator[Evaluation | EvaluationError]:
    """The evaluations that stand as events on the spans of a trace export; nearly every body has none, and is not parsed."""
    if EVENT.encode() not in body:
        return
    try:
        request = ExportTraceServiceRequest.FromString(body)
    except DecodeError:
        return
    for resource in request.resource_spans:
        shared = attributes.texts(resource.resource.attributes)
        for span in (span for scope in resource.scope_spans for span in scope.spans):
            for event in span.events:
                if event.name == EVENT:
                    said = shared | attributes.texts(span.attributes) | attributes.texts(event.attributes)
                    try:
                        yield of_event(said, event.time_unix_nano or received_unix_nano, span.trace_id.hex())
                    except EvaluationError as error:
                        yield error


def is_read(key: str) -> bool:
    """Whether an attribute of an event carries a fact that is kept."""
    return key in READ or key.startswith(OWN)


def rows(said: Sequence[Evaluation], record: int, sender: str, received_unix_nano: int) -> pa.Table:
    """Rows of `evaluations`, with the number of their record in `arrival`. A score without a time was made when it came."""
    names = [field.name for field in msgspec.structs.fields(Evaluation) if field.name not in ("evaluated_at", "better")]
    kinds = {"score": pa.float64(), "temperature": pa.float64(), "repeat": pa.int64(), "n": pa.int64()}
    came = datetime.fromtimestamp(received_unix_nano / 1e9, UTC)
    return pa.table(
        {
            **{name: pa.array([getattr(one, name) for one in said], kinds.get(name, pa.string())) for name in names},
            "better": pa.array([one.better or ("lower" if one.kind == "perplexity" else "higher") for one in said], pa.string()),
            "evaluated_at": pa.array([one.evaluated_at or came for one in said], MICROSECOND),
            "evaluation_id": pa.array([_id(one) for one in said], pa.string()),
            "sender": pa.array([sender] * len(said), pa.string()),
            "received_at": pa.array([came] * len(said), MICROSECOND),
            "arrival": pa.array([record] * len(said), pa.int64()),
        }
    )


def _checked(row: Any, where: str, *, strict: bool = True) -> Evaluation:
    try:
        made = msgspec.convert(row, Evaluation, strict=strict)
    except (msgspec.ValidationError, ValueError) as error:
        msg = f"{where}: {error}"
        raise EvaluationError(msg) from error
    for field in msgspec.structs.fields(Evaluation):
        value = getattr(made, field.name)
        if isinstance(value, float) and not math.isfinite(value):
            msg = f"{where}: {field.name} = {value} is no number"
            raise EvaluationError(msg)
        if isinstance(value, str) and len(value) > LIMIT_TEXT_CHARACTERS:
            msg = f"{where}: {field.name} is longer than {LIMIT_TEXT_CHARACTERS} characters"
            raise EvaluationError(msg)
        if isinstance(value, str) and "\0" in value:
            msg = f"{where}: {field.name} holds NUL, which no text does"
            raise EvaluationError(msg)
    _check_meaning(made, where)
    if made.evaluated_at is not None and not 1970 < made.evaluated_at.year < 2200:
        msg = f"{where}: evaluated_at = {made.evaluated_at.isoformat()}: a time from 1971 to 2199 is taken"
        raise EvaluationError(msg)
    changes: dict[str, Any] = {} if made.trace_id is None else {"trace_id": made.trace_id.lower()}  # as spans write theirs
    if made.evaluated_at is not None and made.evaluated_at.tzinfo is None:
        changes["evaluated_at"] = made.evaluated_at.replace(tzinfo=UTC)
    return msgspec.structs.replace(made, **changes)


def _check_meaning(made: Evaluation, where: str) -> None:
    levers = _levers()
    if made.lever is not None and made.lever not in levers:
        near = difflib.get_close_matches(made.lever, levers, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ";"
        msg = f"{where}: lever {made.lever!r} is unknown{hint} known: {', '.join(levers)}"
        raise EvaluationError(msg)
    for name in ("repeat", "n"):
        value = getattr(made, name)
        if value is not None and not 0 <= value < 1 << 63:
            msg = f"{where}: {name} = {value}: a whole number from 0 on is taken"
            raise EvaluationError(msg)
    if made.temperature is not None and made.temperature < 0:
        msg = f"{where}: temperature = {made.temperature}: a number from 0 on is taken"
        raise EvaluationError(msg)
    if made.trace_id is not None and TRACE_ID.fullmatch(made.trace_id) is None:
        msg = f"{where}: trace_id = {made.trace_id[:64]!r}: 32 hex digits are taken"
        raise EvaluationError(msg)
    if not made.suite:
        msg = f"{where}: suite is empty: the name of what was evaluated is taken"
        raise EvaluationError(msg)


@functools.cache
def _levers() -> tuple[str, ...]:
    return dialects.deployment().marks.levers


def _id(one: Evaluation) -> str:
    """The same for the same evaluation sent again: repeats are told apart by what they state, never by when they came."""
    return hashlib.blake2b(msgspec.json.encode(one), digest_size=16).hexdigest()
