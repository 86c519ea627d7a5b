#!/bin/sh
# llm-d: the endpoint picker's and the sidecar's spans to Leverwatch. Usage: llm-d.sh COMMAND... of the EPP, or of the P/D sidecar.
# It sends 10 % of requests unless told otherwise, and with it the engines behind it, which follow its decision. Without
# OTEL_TRACES_EXPORTER=otlp its spans go to the console. gRPC only.
set -eu
export OTEL_TRACES_EXPORTER=otlp
export OTEL_EXPORTER_OTLP_ENDPOINT="${LEVERWATCH_OTLP:-http://127.0.0.1:4317}"
export OTEL_TRACES_SAMPLER=parentbased_traceidratio
export OTEL_TRACES_SAMPLER_ARG=1
export OTEL_RESOURCE_ATTRIBUTES="${OTEL_RESOURCE_ATTRIBUTES:-service.instance.id=$(hostname)}"
exec "$@" --tracing=true
