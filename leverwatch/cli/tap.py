"""`leverwatch tap`: the response tap's file, to be put into an engine's environment or run in front of an engine."""

from __future__ import annotations

import argparse
import sys
from importlib import resources
from typing import Any

HELP = "print response_tap.py, which reads cached tokens and draft acceptance out of an engine's answers"
DESCRIPTION = """\
Print response_tap.py, one file that needs the standard library and opentelemetry alone. vLLM and SGLang state cached tokens and draft
acceptance only in their answers; the file reads them there and sends them as spans, which Leverwatch joins with the engine's.

    leverwatch tap > response_tap.py

inside vLLM (the SDK and an exporter are in its environment already):

    export PYTHONPATH=$PWD OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:4317
    vllm serve MODEL --middleware response_tap.ResponseTap --otlp-traces-endpoint http://127.0.0.1:4317 \\
        --enable-prompt-tokens-details --per-request-spec-decode-metrics summary

in front of SGLang, which takes no middleware, or of any server that speaks the OpenAI API:

    pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-grpc
    python -m sglang.launch_server --model MODEL --port 30000 --enable-trace --otlp-traces-endpoint 127.0.0.1:4317 --enable-cache-report
    python response_tap.py --upstream http://127.0.0.1:30000 --listen 127.0.0.1:8100

A streamed answer states its usage only if the client asks for it: "stream_options": {"include_usage": true}.
"""


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    parser = subparsers.add_parser("tap", help=HELP, description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.set_defaults(run=run)


def run(_args: argparse.Namespace) -> int:
    """Prints the file."""
    sys.stdout.write((resources.files("collectors") / "response_tap.py").read_text(encoding="utf-8"))
    return 0
