"""A simulated hour of 40 replicas and 50 requests a second: the seconds of simulating it, and of telling it as the demo does.

    taskset -c 0 python benchmarks/fleet.py

Nothing is sent: spans of engines and of response taps, log records and samples of scraped pages are encoded and packed into the bodies of
exports, which are then dropped. It prints one JSON object; seconds are of CPU, a request's in microseconds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from demo import scenarios
from demo.fleet import Fleet
from demo.telemetry import Telemetry

NS = 1_000_000_000
SLICE_S = 60
BEGAN_NS = 1_764_400_000 * NS
FLEET = """
name = "forty"
what = "Forty replicas of three engines."
hours = 1

[[pools]]
name = "chat"
model = "chat-70b"
engine = "vllm"
network = "dense-70b"
hardware = "h100"
groups = 20
lever = "speculation"
[pools.serving]
tensor_parallel = 4
speculation = { draft_tokens = 4, acceptance = [0.7, 0.6], draft_step_s = 2e-4 }
[pools.control]
tensor_parallel = 4

[[pools]]
name = "code"
model = "code-34b"
engine = "sglang"
network = "dense-34b"
hardware = "h100"
groups = 12
[pools.serving]
tensor_parallel = 2
affinity = { cap = 1.5 }

[[pools]]
name = "docs"
model = "docs-8b"
engine = "dynamo"
network = "dense-8b"
hardware = "h100"
groups = 4
lever = "disaggregation"
[pools.serving]
split = { prefill = 1, decode = 1, link_bytes_per_s = 25e9, local_below_tokens = 512 }
[pools.control]

[[traffic]]
name = "chat"
pool = "chat"
requests_per_s = 25
input_tokens = [256, 4096]
output_median_tokens = 180
system_tokens = 512
turns = 3

[[traffic]]
name = "code"
pool = "code"
requests_per_s = 15
input_tokens = [512, 8192]
output_median_tokens = 160
system_tokens = 1024
turns = 4

[[traffic]]
name = "docs"
pool = "docs"
requests_per_s = 10
input_tokens = [512, 8192]
output_median_tokens = 120
"""


def main() -> None:
    """Runs the benchmark and prints its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--minutes", type=int, default=60, help="of the simulated fleet")
    args = parser.parse_args()
    scenario = scenarios.parse(FLEET, "benchmarks/fleet.py")
    began_s, wall_s = time.process_time(), time.perf_counter()
    fleet, telemetry = Fleet(scenario, BEGAN_NS, seed=1), Telemetry(scenario.disorder, BEGAN_NS)
    simulated_s, items, sizes = time.process_time() - began_s, Counter[str](), Counter[str]()
    for slice_ in range(1, args.minutes * 60 // SLICE_S + 1):
        before_s = time.process_time()
        events = fleet.until(BEGAN_NS + slice_ * SLICE_S * NS)
        simulated_s += time.process_time() - before_s
        for body in telemetry.bodies(events):
            items[body.signal] += body.items
            sizes[body.signal] += len(body.content)
    total_s = time.process_time() - began_s
    print(
        json.dumps(
            {
                "requests": fleet.requests,
                "simulated_s": round(simulated_s, 2),
                "emitted_s": round(total_s - simulated_s, 2),
                "wall_s": round(time.perf_counter() - wall_s, 2),
                "simulated_us_a_request": round(simulated_s / fleet.requests * 1e6, 1),
                "emitted_us_a_request": round((total_s - simulated_s) / fleet.requests * 1e6, 1),
                "items": items,
                "bytes": sizes,
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
