"""What a deployment is configured to be, in the rows: facts in their order, settings over time, links, hashed ids."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from collectors_bodies import START, attribute, body, request, span
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collectors.deployed import Asked, deployed
from collectors.facts import Link
from collectors.identity import IdentityError
from collectors.load import Loader
from collectors.registry import HEADER, RegistryError
from collectors.spool import Spool
from queries.store import Store

KEY = b"a key of sixteen bytes and more"
SWITCHED = datetime.fromtimestamp(START / 1e9 + 1.0, UTC).isoformat()


class Room:
    """A store and the loader of a deployment."""

    def __init__(self, folder: Path, asked: Asked) -> None:
        self.folder = folder
        self.store = Store(folder)
        self.loader = Loader(self.store, deployed=deployed(asked))
        self.spool = Spool(folder / "spool", self.loader.position())

    def load(self, *bodies: bytes, signal: str = "traces") -> None:
        for one in bodies:
            self.spool.append(signal, "sender", START, one).result(10)
        while self.loader.load_next(self.spool):
            pass

    def signals(self, *names: str) -> list[tuple[Any, ...]]:
        columns = ", ".join(f"signals.{name}" for name in names)
        return self.store.frame(f"select {columns} from spans order by start_unix_nano").rows()

    def values(self, column: str) -> list[Any]:
        return [row["found"] for row in self.store.rows(f"select {column} as found from spans order by start_unix_nano")]

    def close(self) -> None:
        self.spool.close()
        self.store.close()


@pytest.fixture
def rooms(tmp_path: Path) -> Iterator[Any]:
    opened: list[Room] = []

    def make(**asked: Any) -> Room:
        opened.append(Room(tmp_path / f"data{len(opened)}", Asked(**asked)))
        return opened[-1]

    yield make
    for room in opened:
        room.close()


@pytest.fixture
def registry(tmp_path: Path) -> Any:
    def write(*lines: str) -> Path:
        path = tmp_path / "levers.csv"
        path.write_text("\n".join((",".join(HEADER), *lines)) + "\n")
        return path

    return write


def said(number: int, **attributes: str) -> Span:
    return span(number, attributes=[attribute(key.replace("__", "."), value) for key, value in attributes.items()])


def test_a_span_wins_over_the_registry_which_wins_over_the_resource_which_wins_over_the_defaults(rooms: Any, registry: Any) -> None:
    room = rooms(registry=registry("r,,,model,of registry"), defaults={"model": "of defaults", "hardware": "h200", "gpus": 8})
    of_resource = {"service__instance__id": "r", "leverwatch__model": "of resource"}
    room.load(
        body(said(1, leverwatch__model="of span"), said(2), **of_resource),
        body(said(3), service__instance__id="other", leverwatch__model="of resource"),
        body(said(4), service__instance__id="other"),
        body(said(5, gen_ai__request__model="of dialect"), service__instance__id="other"),
    )
    assert room.signals("model", "hardware", "gpus") == [
        ("of span", "h200", 8),
        ("of registry", "h200", 8),
        ("of resource", "h200", 8),
        ("of defaults", "h200", 8),
        ("of dialect", "h200", 8),
    ]


def test_a_registry_row_counts_for_the_requests_that_start_while_it_is_valid(rooms: Any, registry: Any) -> None:
    room = rooms(
        registry=registry(f"r,,{SWITCHED},lever.speculation,on", f"r,{SWITCHED},,lever.speculation,off", "r,,,arm.speculation,treated")
    )
    room.load(body(said(999), said(1000), said(1001), service__instance__id="r"), body(said(1002), service__instance__id="other"))
    assert room.values("levers") == [{"speculation": "on"}, {"speculation": "off"}, {"speculation": "off"}, None]
    assert room.values("arms") == [{"speculation": "treated"}] * 3 + [None]


def test_levers_take_the_same_order_one_by_one(rooms: Any, registry: Any) -> None:
    room = rooms(
        registry=registry("r,,,lever.speculation,registry", "r,,,lever.kv_quantization,registry"),
        defaults={"lever": {"speculation": "default", "prefix_caching": "default"}},
    )
    room.load(
        body(
            said(1, leverwatch__lever__speculation="span"),
            service__instance__id="r",
            leverwatch__lever__kv_quantization="resource",
            leverwatch__lever__expert_parallel="resource",
        )
    )
    assert room.values("levers") == [
        {"expert_parallel": "resource", "kv_quantization": "registry", "prefix_caching": "default", "speculation": "span"}
    ]


def test_a_registry_forces_a_dialect(rooms: Any, registry: Any) -> None:
    room = rooms(registry=registry("r,,,dialect,vllm"))
    room.load(body(said(1), scope="something else", service__instance__id="r"), body(said(2), scope="something else"))
    assert room.values("dialect")[0] == "vllm"
    assert room.values("dialect")[1] != "vllm"


def test_a_link_fills_the_peak_where_nothing_else_says_it_and_the_closest_wins(rooms: Any) -> None:
    room = rooms(links=(Link("", "h200", 1e9), Link("pd-1p2d", "h200", 2e9), Link("pd-1p2d", "", 3e9)))
    room.load(
        body(said(1, leverwatch__topology="pd-1p2d"), said(2), leverwatch__hardware="h200"),
        body(said(3, leverwatch__topology="pd-1p2d"), said(4, leverwatch__link_peak_bytes_per_s="4e9"), leverwatch__hardware="b200"),
        body(said(5)),
    )
    assert room.signals("link_peak_bytes_per_s") == [(2e9,), (1e9,), (3e9,), (4e9,), (None,)]


def test_a_setting_is_written_once_and_again_when_it_changes(rooms: Any) -> None:
    room = rooms()
    lever, arm = "leverwatch__lever__speculation", "leverwatch__arm__speculation"
    room.load(body(said(1, **{lever: "eagle3", arm: "treated"}), said(2, **{lever: "off", arm: "control"}), service__instance__id="r"))
    room.load(body(said(3, **{lever: "eagle3", arm: "treated"}), said(4, **{lever: "off", arm: "control"}), service__instance__id="r"))
    room.load(body(said(5, **{lever: "ngram", arm: "treated"}), service__instance__id="r"), body(said(6)))
    found = room.store.frame(
        "select replica, lever, arm, setting, epoch_ns(since) - $start as since_ns from lever_settings order by since", {"start": START}
    )
    assert found.rows() == [
        ("r", "speculation", "treated", "eagle3", 1_000_000),
        ("r", "speculation", "control", "off", 2_000_000),
        ("r", "speculation", "treated", "ngram", 5_000_000),
    ]


def test_the_tenant_stands_where_the_configuration_says(rooms: Any) -> None:
    room = rooms(tenant_from=("customer", "team"))
    room.load(body(said(1, tenant="no", team="b"), said(2, customer="a", team="b"), said(3, leverwatch__tenant="own", customer="a")))
    assert room.signals("tenant") == [("b",), ("a",), ("own",)]


def test_hashed_ids_are_the_same_everywhere_and_stand_nowhere_in_clear(rooms: Any) -> None:
    room = rooms(hash=("tenant", "request_id"), hash_key=KEY, hash_attributes=("enduser.*",))
    event = Span.Event(name="said", time_unix_nano=START, attributes=[attribute("user.id", "acme-tenant")])
    link = Span.Link(trace_id=b"1" * 16, span_id=b"1" * 8, attributes=[attribute("tenant.id", "acme-tenant")])
    one = said(1, gen_ai__request__id="request-77", tenant="acme-tenant", enduser__name="acme-tenant")
    one.events.append(event)
    one.links.append(link)
    room.load(body(one), body(said(2, gen_ai__request__id="request-77", tenant="other")), body(said(3), **{"tenant.id": "acme-tenant"}))
    score = b'{"suite": "s", "score": 1.0, "request_id": "request-77"}'
    room.load(score, signal="evaluations")
    tenants, ids = room.values("signals.tenant"), room.values("signals.request_id")
    assert ids[0] == ids[1]
    assert tenants[0] == tenants[2] != tenants[1]
    assert (len(ids[0]), len(tenants[0])) == (32, 32)
    assert room.store.rows("select request_id from evaluations") == [{"request_id": ids[0]}]
    assert room.values("attributes['tenant']")[0] == room.values("attributes['enduser.name']")[0] == tenants[0]
    assert room.values("attributes['gen_ai.request.id']")[:2] == ids[:2]
    assert room.values("resource['tenant.id']")[2] == tenants[0]
    assert holders(room, b"acme-tenant", b"request-77") == []


def holders(room: Room, *markers: bytes) -> list[str]:
    """The files of a store, parts included, that hold a text in clear once all is written out."""
    room.spool.close()  # which lets go of what is loaded first
    everything = str(room.store.frame("select * from spans").to_dicts()) + str(room.store.frame("select * from evaluations").to_dicts())
    found = [str(path) for path in room.folder.rglob("*") if path.is_file() and any(marker in path.read_bytes() for marker in markers)]
    return found + ["rows"] * any(marker.decode() in everything for marker in markers)


def test_numbers_that_are_ids_are_hashed_too(rooms: Any) -> None:
    room = rooms(hash=("tenant",), hash_key=KEY)
    room.load(body(span(1, attributes=[attribute("tenant", 42)]), span(2, attributes=[attribute("tenant", "42")])))
    first, second = room.values("attributes['tenant']")
    assert first == second != "42"
    assert room.values("signals.tenant") == [first, second]


def test_another_key_makes_other_hashes(rooms: Any) -> None:
    found = []
    for key in (KEY, KEY + b"!", KEY * 5):
        room = rooms(hash=("request_id",), hash_key=key)
        room.load(body(said(1, gen_ai__request__id="request-77")))
        found += room.values("signals.request_id")
    assert len(set(found)) == 3


def test_hashing_without_a_key_and_wrong_defaults_are_refused() -> None:
    with pytest.raises(IdentityError, match="the key has 3 bytes; 16 or more are taken"):
        deployed(Asked(hash=("tenant",), hash_key=b"abc"))
    with pytest.raises(RegistryError, match=r"\[defaults\] lever.x: key 'lever.x' is unknown"):
        deployed(Asked(defaults={"lever": {"x": "on"}}))


def test_nothing_configured_changes_nothing(rooms: Any) -> None:
    plain, configured = rooms(), rooms(tenant_from=("tenant", "tenant.id", "user.id"))
    export = request(said(1, tenant="a", gen_ai__request__id="x"), service__instance__id="r").SerializeToString()
    for room in (plain, configured):
        room.load(export)
    assert plain.values("signals") == configured.values("signals")
    assert plain.signals("tenant", "request_id") == [("a", "x")]
