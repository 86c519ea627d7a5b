"""What the API's routes answer, a row per route: pure data, which `api_description.py` puts into the OpenAPI description.

An answer is written as words `name:type`, of `text` (the default), `number`, `integer`, `boolean`, `time`, `object` and `list`; with `?` it
may be null. `[...]` is an array of such objects. An object may have more keys than are named.
"""

from __future__ import annotations

from dataclasses import dataclass

_SEGMENT = "segment:object"
_DELIVERY = (
    "delivery_id flip_id webhook_id receiver attempt:integer started_at:time ended_at:time? outcome status_code:integer? error:text? "
    "next_attempt_at:time?"
)
_SILENCE = (
    "silence_id starts_at:time ends_at:time created_at:time lever:text? policy:text? segment:object? receiver:text? flip_id:text? "
    "created_by comment ended_at:time? state"
)
_SILENCED = f"{_SILENCE} notes:list"
_EFFECT = (
    f"lever {_SEGMENT} metric arm_a arm_b:text? since:time until:time blocks:integer n_a:integer n_b:integer value_a:number? "
    "value_b:number? gain:number? gain_low:number? gain_high:number? method basis coverage:number note:text?"
)
_QUESTION = "name title answers sql group"
_CALIBRATION = "lever metric blocks_together:integer phi:number? in_use:number? splits:integer since:time? until:time? missing:text?"


@dataclass(frozen=True, slots=True)
class Answers:
    """What one route answers: its title, the answer's shape, and which refusals it has beside those that every route has."""

    title: str
    shape: str
    refusals: tuple[int, ...] = ()
    takes: str = "read"


ROUTES: dict[str, Answers] = {
    "GET /api/report": Answers("Metrics per segment", "[requests:integer]", (400, 403, 404, 413, 422, 429, 504)),
    "GET /api/effects": Answers("Effects of a lever", f"[{_EFFECT}]", (400, 404)),
    "GET /api/break-even": Answers("Where a lever stops paying", f"[lever {_SEGMENT} key metric basis state note:text?]", (400, 404)),
    "GET /api/verdicts": Answers(
        "Verdicts now",
        f"[policy policy_version lever {_SEGMENT} verdict action reason_code reason decided_at:time block_ended_at:time state "
        "state_since:time shadow:boolean]",
        (400,),
    ),
    "GET /api/policies": Answers("Policies that are judged by", "[policy lever version owner shadow:boolean severity from text]"),
    "GET /api/flips": Answers(
        "Flips with their notices",
        f"[flip_id policy lever {_SEGMENT} state_before state_after decided_at:time reason notice:object action:text? severity:text?]",
        (400,),
    ),
    "GET /api/deliveries": Answers("Deliveries of notices", f"[{_DELIVERY}]", (400,)),
    "POST /api/deliveries/{delivery_id}/replay": Answers("Send a notice again", _DELIVERY, (404,), "admin"),
    "GET /api/receivers": Answers(
        "Receivers", "[receiver kind waiting:integer given_up:integer is_stopped:boolean delivered_at:time? held_until:time?]"
    ),
    "POST /api/receivers/{name}/replay": Answers("Send again what was given up", "receiver held_until:time?", (404,), "admin"),
    "POST /api/receivers/{name}/test": Answers("Send a test notice", "receiver webhook_id held_until:time?", (404,), "admin"),
    "GET /api/silences": Answers("Silences", f"[{_SILENCE}]"),
    "POST /api/silences": Answers("Begin a silence", _SILENCED, (400, 413), "admin"),
    "DELETE /api/silences/{silence_id}": Answers("End a silence", _SILENCE, (404,), "admin"),
    "POST /api/flips/{flip_id}/snooze": Answers("Snooze a flip", _SILENCED, (400, 404, 413), "admin"),
    "GET /api/revalidations": Answers(
        "What is to be judged again", "[lever changed_from:text? changed_to:text? changed_at:time scope:object other_lever policy]", (400,)
    ),
    "GET /api/after-checks": Answers(
        "Whether a switch helped", f"[flip_id policy lever {_SEGMENT} switched_at:time metric before:number? after:number? said]", (400,)
    ),
    "GET /api/budgets": Answers("Budget ledger of a lever", f"[policy lever {_SEGMENT} until:time rows:list said]", (400, 404)),
    "GET /api/debt": Answers(
        "Lever debt",
        f"[policy lever {_SEGMENT} since:time until:time stood_s:number treated_s:number requests:integer? tokens:integer? lost_s:number?]",
        (400,),
    ),
    "GET /api/storage": Answers("What the data folder holds", "holdings:list free_bytes:integer min_free_bytes:integer dropped:list"),
    "POST /api/snapshots": Answers("Stage a snapshot", "folder manifest:object", (409, 500), "admin"),
    "GET /api/doctor": Answers(
        "What can be measured", "status:integer since:time? until:time? now:time requests:integer replicas:list senders:list", (400,)
    ),
    "GET /api/explain": Answers(
        "What tells two sets apart",
        "[key condition:text? share_a:number? share_b:number? distance:number? requests_a:integer requests_b:integer note:text?]",
        (400, 403, 413, 422, 429, 504),
    ),
    "GET /api/calibrations": Answers("Scales that splits of replicas ask for", f"[{_CALIBRATION}]", (400,)),
    "POST /api/calibrations": Answers("Widen scales as splits ask for", f"[{_CALIBRATION}]", (400,), "admin"),
    "GET /api/holdout": Answers(
        "Smallest holdout",
        f"[lever {_SEGMENT} metric change:number within_hours:number share:number? is_reached:boolean note:text?]",
        (400,),
    ),
    "GET /api/widening": Answers(
        "Whether a lever may be widened", f"[lever {_SEGMENT} may_widen:boolean missing:list gain_low:number? gain_asked:number]", (400,)
    ),
    "POST /api/backtest": Answers(
        "Policies over stored history", "changes:list recommendations:list streams:list switches:list notes:list", (400, 413, 429)
    ),
    "POST /api/evaluations": Answers("Take quality scores", "taken:integer", (400, 413, 429, 503), "ingest"),
    "GET /api/addresses": Answers("Where OTLP over HTTP is taken", "otlp_http:object"),
    "GET /api/ledger": Answers(
        "What became of what was sent",
        "[sender signal received:integer stored:integer duplicate:integer rejected:integer dropped:integer pending:integer late:integer]",
    ),
    "POST /api/sql": Answers(
        "Read-only SQL",
        "columns:list rows:list row_count:integer truncated:boolean elapsed_s:number note:text?",
        (400, 403, 409, 413, 422, 429, 504),
    ),
    "GET /api/sql/{run_id}": Answers("A statement that runs", "id state elapsed_s:number limits:object", (404,)),
    "DELETE /api/sql/{run_id}": Answers("Cancel a statement", "id state", (404,)),
    "GET /api/schema": Answers("Tables, metrics and functions", "tables:list metrics:list functions:list"),
    "GET /api/questions": Answers("Questions by name", f"[{_QUESTION}]"),
    "POST /api/questions": Answers("Save a question", "name", (400, 413), "admin"),
    "GET /api/questions/{name}": Answers("One question", _QUESTION, (404,)),
    "DELETE /api/questions/{name}": Answers("Remove a saved question", "name", (404,), "admin"),
    "GET /metrics": Answers("Prometheus metrics", ""),
    "GET /healthz": Answers("The process answers", "status", takes=""),
    "GET /readyz": Answers("Exports are taken and jobs run", "status", (503,), takes=""),
}
EXAMPLES: dict[str, object] = {
    "by": "model",
    "metrics": "tpot_s,ttft_s",
    "since": "24h",
    "until": "2026-11-29T12:00:00Z",
    "where": "outcome = 'ok'",
    "from": "auto",
    "lever": "speculation",
    "segment": '{"model":"m"}',
    "a": "slow",
    "b": "outcome = 'error'",
    "metric": "tpot_s",
    "change": 0.05,
    "within_hours": 24,
    "gain_on": 0.05,
    "splits": 10,
    "limit": 100,
}
MEANINGS: dict[str, str] = {
    "policy": "a policy's name, such as speculation-net-itl",
    "verdict": "only streams with this verdict",
    "state": "only those in this state",
    "action": "only those that advise this",
    "outcome": "only notices that stand so now",
    "flip_id": "a flip's id, as GET /api/flips gives it",
    "delivery_id": "a delivery's id, as GET /api/deliveries gives it",
    "silence_id": "a silence's id, as GET /api/silences gives it",
    "receiver": "a configured receiver's name",
    "sender": "the name that a sender gives itself, else its address",
    "name": "a name, as the list gives it",
    "run_id": "the id that the statement was sent with",
}
"""What parameters mean that do not say so themselves."""
REFUSALS: dict[int, str] = {
    400: "A parameter or the body is not taken; the message says which and what is",
    401: "A token is needed, or the one shown is unknown",
    403: "This token may not do that, or the statement is refused",
    404: "There is nothing of that name",
    409: "Another one is under way, or the statement was cancelled",
    413: "The body or the answer is too large",
    422: "A value is of the wrong kind or out of its bounds, or the statement needs more memory than it may take",
    429: "Too many at once; the same may be sent again later",
    500: "It could not be done here; the message says why",
    503: "The server is stopping, or a job fails",
    504: "The statement was stopped at its time limit",
}
