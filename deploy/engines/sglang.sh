#!/bin/sh
# SGLang 0.5.4 to 0.5.23 with its spans to Leverwatch. Usage: sglang.sh --model-path MODEL [more of its arguments]
# The endpoint is host:port, without a scheme. SGLANG_TRACE_LEVEL 3, the default, gives the stages that Leverwatch reads; leave it.
set -eu
export OTEL_EXPORTER_OTLP_TRACES_PROTOCOL="${OTEL_EXPORTER_OTLP_TRACES_PROTOCOL:-grpc}"
export OTEL_RESOURCE_ATTRIBUTES="${OTEL_RESOURCE_ATTRIBUTES:-service.instance.id=$(hostname)}"
exec python -m sglang.launch_server "$@" \
    --enable-trace \
    --otlp-traces-endpoint "${LEVERWATCH_OTLP:-127.0.0.1:4317}" \
    --enable-metrics
