"""Which commands of the documents are not run by tests, and why; and which exit statuses beside 0 are right."""

from __future__ import annotations

import re
from collections.abc import Mapping

# A pattern that the command holds, and why it does not run here. It is parsed by `bash -n` all the same, and its options are checked.
UNRUN: Mapping[str, str] = {
    r"^(\S*/)?leverwatch (serve|demo|collect|work|mcp)\b": "does not end by itself: tests/test_leverwatch_serve.py and its like start them",
    r"\b(s3|ray)://": "an object store or a cluster",
    r"leverwatch migrate\b": "needs a lake: tests/test_leverwatch_moving.py moves one",
    r"leverwatch verify\b": "needs the notice of a flip that was judged here: tests/test_leverwatch_verify.py has one",
    r"leverwatch load (exports/|trace|perf)": "names recordings of the reader's own: tests/test_leverwatch_cli.py loads some",
    r"leverwatch (deliveries --replay|silence snooze|silence end)": "names ids of the reader's own: tests/test_alerts_silences.py has some",
    r"^(install|useradd|userdel|rm|python3 -m venv)\b|/opt/leverwatch": "installs on the machine, or takes away",
    r"^(git|make|pip|uv|npm|go|apt-get|sudo)\b": "installs, or runs the very tests",
    r"^(PYTHONPATH=\S+ )?(taskset -c \d+ )?python3? benchmarks/": "a benchmark takes minutes",
    r"^python3? \S*response_tap\.py\b": "serves: tests/test_collectors_response_tap_proxy.py starts it",
    r"^(docker|kubectl|helm|systemctl|journalctl|podman|ssh|rsync)\b": "needs what no test machine has: containers, a cluster, systemd",
    r"(?m)^(vllm|python3? -m (sglang|vllm|tensorrt_llm|dynamo)|trtllm-serve|dynamo|litellm|envoy|aigw|otelcol)\b": "an engine or gateway",
    r"\A#!": "a program to be saved and given to something else",
    r"^(chmod|socat)\b": "starts such a program: tests/test_docs_webhooks.py does",
    r"^amtool\b|grafana": "programs of others",
    r"^curl .*//(?!127\.0\.0\.1:8080|localhost:8080|leverwatch:8080)": "asks a server that is not ours",
}
# A pattern that the command holds, and the statuses beside 0 that answer it rightly on a store without what it asks for.
ALSO_RIGHT: Mapping[str, tuple[int, ...]] = {
    r"leverwatch doctor\b": (1, 3),  # a core metric cannot be computed of the store's replicas, or there are no requests in the hour
    r"leverwatch calibrate\b": (3,),  # it takes four replicas and two days
    r"leverwatch holdout\b": (1,),  # no share of the store's traffic notices the change in time
    r"leverwatch deliveries\b": (1,),  # there are failed ones
    r"leverwatch policy (diff|backtest)\b": (1,),  # there are changes; something fired falsely or was missed
}

# A pattern that the command holds, and why what the page shows of its output cannot come here: it is run, and not compared.
UNCOMPARED: Mapping[str, str] = {
    r"leverwatch doctor\b": "names the replicas of whoever asked",
    r"leverwatch policy backtest\b": "the store's day is stated in rows, not judged: nothing fires of it",
}


def is_compared(text: str) -> bool:
    """Whether the output that a page shows is held against what came."""
    return not any(re.search(pattern, text) for pattern in UNCOMPARED)


def why_not(text: str) -> str:
    """Why a command is not run, or nothing."""
    return next((why for pattern, why in UNRUN.items() if re.search(pattern, text)), "")


def right(text: str) -> tuple[int, ...]:
    """The exit statuses that a command may have."""
    return (0, *(status for pattern, more in ALSO_RIGHT.items() if re.search(pattern, text) for status in more))
