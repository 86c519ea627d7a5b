"""`kill -9` at random moments under load, again and again: nothing acknowledged is lost, nothing is stored twice.

    python benchmarks/kill.py --kills 20

Each life of the server is cut short at a random moment after it was started, sometimes before it listens; the next starts on the same
folder and port. Senders offer what was not acknowledged again until it is. At the end the ids in `spans` and `requests` are compared, one
by one, with those that were acknowledged.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import servers
import stored

LIFE_S = 4.0
PATIENCE_S = 300.0
EARLY = 5  # one kill in so many comes before the server listens


def lives(args: argparse.Namespace, folder: Path, port: int) -> None:
    """Starts a server and kills it, as often as asked."""
    chance = np.random.default_rng(args.seed)
    with (folder / "serve.log").open("w", encoding="utf-8") as said:
        for number in range(1, args.kills + 1):
            process = subprocess.Popen(servers.serve_command(folder / "data", port), stdout=subprocess.PIPE, stderr=said, text=True)
            assert process.stdout is not None
            is_early = number % EARLY == 0
            if not is_early:
                process.stdout.readline()
            life_s = chance.uniform(0.1, args.life)
            time.sleep(life_s)
            status = process.poll()
            process.kill()
            process.communicate()
            when = f"{life_s:.1f} s after it {'was started' if is_early else 'listened'}"
            print(f"kill {number}: {when}" if status is None else f"kill {number}: it had ended with status {status}", flush=True)


def main() -> None:
    """Kills, then prints what was lost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--life", type=float, default=LIFE_S, help="of a server once it listens, at most, in seconds")
    parser.add_argument("--senders", type=int, default=8)
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), servers.free_port()
        stop, ids = folder / "stop", folder / "ids"
        options = {"senders": args.senders, "seconds": 3600, "patience": PATIENCE_S, "ids": ids, "stop": stop}
        sending = servers.begin_sending(f"127.0.0.1:{port}", **options)
        lives(args, folder, port)
        with servers.leverwatch(folder / "data", port):
            stop.touch()
            found = servers.outcome(sending)
            print(f"{found['failed']:,} exports failed and were offered again, {found['slowed']:,} were told to come later")
        print(stored.held(folder / "data", ids.read_bytes()))


if __name__ == "__main__":
    main()
