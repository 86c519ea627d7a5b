#!/bin/sh
# vLLM 0.11 to 0.33 with its spans to Leverwatch. Usage: vllm.sh MODEL [more of vllm serve's arguments]
# Leave the engine's stats on: with --disable-log-stats the span code fails. --collect-detailed-traces has no effect. The Rust frontend has
# no spans. Cached tokens and draft acceptance stand in the answers alone: see ../tap.
set -eu
export OTEL_SERVICE_NAME="${OTEL_SERVICE_NAME:-vllm}"
export OTEL_EXPORTER_OTLP_TRACES_PROTOCOL="${OTEL_EXPORTER_OTLP_TRACES_PROTOCOL:-grpc}"
export OTEL_RESOURCE_ATTRIBUTES="${OTEL_RESOURCE_ATTRIBUTES:-service.instance.id=$(hostname),leverwatch.model=$1}"
exec vllm serve "$@" --otlp-traces-endpoint "${LEVERWATCH_OTLP:-http://127.0.0.1:4317}"
