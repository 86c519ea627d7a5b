#!/bin/sh
# vLLM with the tap inside. Usage: vllm.sh MODEL [more of vllm serve's arguments]
set -eu
here=$(mktemp -d)
leverwatch tap > "$here/response_tap.py"
export PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}"
export OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="${OTEL_EXPORTER_OTLP_TRACES_ENDPOINT:-http://127.0.0.1:4317}"
exec vllm serve "$@" \
    --middleware response_tap.ResponseTap \
    --otlp-traces-endpoint "$OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" \
    --enable-prompt-tokens-details \
    --per-request-spec-decode-metrics summary
