"""A script that judges, hands over and delivers, and ends itself at one step after the other: every commit and every post.

    python notice_crash.py FOLDER ADDRESS

One line of JSON for each step, of what the next run, which nothing ends, has stored at its end. Each run that is ended is a process of its
own; those that come after them share one, each with a store of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import httpx
import polars as pl
from effect_evidence import evident_row

from alerts import deliver, outbox
from alerts.deliver import Route
from alerts.policy import shipped
from alerts.receivers import Receiver
from alerts.run import run
from queries.store import Store, Transaction

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NAME = "oncall"
NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
ENDS = [NOW.replace(hour=0, minute=minute) for minute in (5, 10, 15)]
POLICIES = [policy for policy in shipped() if policy.lever == "speculation"]


class Fuse:
    """Ends this process at the step of a number; counts them where it is None."""

    def __init__(self, at: int | None) -> None:
        self.at, self.steps = at, 0

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


def filled(folder: Path) -> None:
    """A store with effects that harm."""
    store = Store(folder)
    row = {"lever": "speculation", "segment": '{"model":"m"}', "metric": "net_itl_s", "arm_a": "treated", "arm_b": "control", "blocks": 24}
    row |= {"n_a": 900, "n_b": 900, "value_a": 0.031, "value_b": 0.027, "gain": -0.15, "gain_low": -0.2, "gain_high": -0.1}
    row |= {"method": "test", "basis": "control", "coverage": 1.0}
    with store.write() as transaction:
        transaction.insert("effects", pl.DataFrame([evident_row(row | {"since": end, "until": end}) for end in ENDS]))
    store.close()


def life(folder: Path, address: str, fuse: Fuse | None) -> dict[str, Any]:
    """What a server does between two blocks, once; nothing ends it where there is no fuse."""
    if fuse is not None:
        _arm(fuse)
    store = Store(folder)
    run(store, POLICIES, NOW, ENDS[-1])
    to = _route(f"{address}/{folder.name}")
    outbox.put_in(store, to.receiver, ENDS[-1], NOW, caught_up=True)
    deliver.deliver_waiting(store, to, lambda: NOW)
    said: dict[str, Any] = {"case": folder.name, "steps": fuse.steps if fuse else 0, "waiting": len(outbox.waiting(store, NAME))}
    said["flips"] = store.frame("select flip_id from flips")["flip_id"].to_list()
    said["delivered"] = store.frame("select webhook_id from deliveries where outcome = 'delivered'")["webhook_id"].to_list()
    return said


def _arm(fuse: Fuse) -> None:
    """Steps are the moments before and after each commit and each post."""
    real_write, real_senders = Store.write, dict(deliver.SENDERS)

    @contextmanager
    def write(store: Store) -> Iterator[Transaction]:
        with real_write(store) as transaction:
            yield transaction
            fuse.step()
        fuse.step()

    def send(*args: Any) -> Any:
        fuse.step()
        done = real_senders["webhook"](*args)
        fuse.step()
        return done

    Store.write = write  # type: ignore[method-assign]
    deliver.SENDERS = {**real_senders, "webhook": send}  # type: ignore[misc]


def _route(url: str) -> Route:
    client = httpx.Client(headers={"x-process": str(os.getpid())}, verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    return Route(Receiver(name=NAME, url=url, secret=SECRET), SECRET, client, Random(7))


def apart(work: Callable[[], Any]) -> bool:
    """Does work in a process of its own, which prints what it gives, a line each; gives whether it came to its end."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    done = work()
    if done is not None:
        sys.stdout.write("".join(json.dumps(one) + "\n" for one in done))
        sys.stdout.flush()
    os._exit(0)  # and not a word to the store: it is as a crash leaves it


def main(folder: Path, address: str) -> None:
    """The cases: `whole`, which nothing ends, one for each of its steps, and `answer`, whose receiver ends who asks it."""
    counted = folder / "steps"
    _route(address).client.close()  # loads what it takes once, for all processes to come
    apart(lambda: filled(folder / "filled"))
    shutil.copytree(folder / "filled", folder / "whole")
    apart(lambda: counted.write_text(str(life(folder / "whole", address, Fuse(None))["steps"])) and None)
    for step in (0, *range(1, int(counted.read_text()) + 1)):
        case = str(step or "answer")
        shutil.copytree(folder / "filled", folder / case)
        if apart(lambda case=case, step=step: life(folder / case, address, Fuse(step)) and None):  # type: ignore[misc]
            msg = f"nothing ended the process at step {case}"
            raise RuntimeError(msg)
    cases = ("whole", "answer", *range(1, int(counted.read_text()) + 1))
    apart(lambda: [life(folder / str(case), address, None) for case in cases])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
