#!/bin/sh
# NVIDIA Dynamo 1.6: spans and request traces to Leverwatch. Usage: dynamo.sh COMMAND..., once for the frontend and once for each worker.
# The engine below sends spans of its own only with its own flag (see vllm.sh, sglang.sh). The request trace, an OTLP log, has the cached
# tokens.
set -eu
export DYN_LOGGING_JSONL=true
export OTEL_EXPORT_ENABLED=1
export OTEL_EXPORTER_OTLP_ENDPOINT="${LEVERWATCH_OTLP:-http://127.0.0.1:4317}"
export OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="$OTEL_EXPORTER_OTLP_ENDPOINT"
export OTEL_EXPORTER_OTLP_LOGS_ENDPOINT="$OTEL_EXPORTER_OTLP_ENDPOINT"
export OTEL_SERVICE_NAME="${OTEL_SERVICE_NAME:-dynamo}"
export OTEL_TRACES_SAMPLE_RATIO=1.0
export DYN_REQUEST_TRACE=1
export DYN_REQUEST_TRACE_SINKS=otel
exec "$@"
