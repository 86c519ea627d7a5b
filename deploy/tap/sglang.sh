#!/bin/sh
# SGLang on port 30000 with the tap in front on port 8100. Usage: sglang.sh MODEL [more of launch_server's arguments]
set -eu
model=$1
shift
here=$(mktemp -d)
leverwatch tap > "$here/response_tap.py"
python -m sglang.launch_server --model-path "$model" --port 30000 \
    --enable-trace --otlp-traces-endpoint "${OTLP_ADDRESS:-127.0.0.1:4317}" --enable-cache-report "$@" &
trap 'kill $!' EXIT
export OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="http://${OTLP_ADDRESS:-127.0.0.1:4317}"
python "$here/response_tap.py" --upstream http://127.0.0.1:30000 --listen 127.0.0.1:8100
