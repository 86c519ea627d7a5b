#!/bin/sh
# TensorRT-LLM with its spans to Leverwatch. Usage: trtllm.sh MODEL [more of trtllm-serve's arguments]
# Without return_perf_metrics the worker says once that metrics are insufficient, and sends nothing. Cached tokens and draft acceptance stand
# in the perf metrics, not on the span: GET /perf_metrics, then `leverwatch load`.
set -eu
options=$(mktemp)
echo "return_perf_metrics: true" > "$options"
export OTEL_SERVICE_NAME="${OTEL_SERVICE_NAME:-trtllm}"
export OTEL_EXPORTER_OTLP_TRACES_PROTOCOL="${OTEL_EXPORTER_OTLP_TRACES_PROTOCOL:-grpc}"
export OTEL_RESOURCE_ATTRIBUTES="${OTEL_RESOURCE_ATTRIBUTES:-service.instance.id=$(hostname),leverwatch.model=$1}"
exec trtllm-serve "$@" \
    --otlp_traces_endpoint "${LEVERWATCH_OTLP:-http://127.0.0.1:4317}" \
    --extra_llm_api_options "$options"
