"""A request's headers in, whether a page of another site may be behind it out: rebound names, foreign origins, forms."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from leverwatch.access import Refusal

FOREIGN_HINT = "ask from a page of this server, or without a browser"
JSON_KINDS = ("application/json", "application/x-ndjson", "application/jsonl")


def odd_host(headers: Headers, names: Iterable[str]) -> Refusal | None:
    """Refuses a Host that is neither an address nor a name of this server: a page whose name was pointed here would have such a one."""
    host = host_name(headers.get("host", ""))
    if not host or host == "localhost" or host.endswith(".localhost") or _is_address(host) or host in names:
        return None
    hint = "name it in [serve] hosts, or in [alerts] base_url"
    return Refusal(421, "unknown_host", f"Host {host!r} is no name of this server", hint)


def foreign(headers: Headers) -> Refusal | None:
    """Refuses what a browser sends for a page of another site."""
    origin, host = headers.get("origin"), headers.get("host", "")
    if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
        return Refusal(403, "foreign_origin", f"Origin {origin[:200]!r} is not this server", FOREIGN_HINT)
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return Refusal(403, "foreign_origin", "the browser says that another site asks", FOREIGN_HINT)
    return None


def no_json(headers: Headers) -> Refusal | None:
    """Refuses a body that is not said to be JSON: forms of other sites can send everything else."""
    kind = headers.get("content-type", "").split(";")[0].strip().lower()
    is_empty = not kind and headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers
    if is_empty or kind in JSON_KINDS:
        return None
    return Refusal(
        415, "content_type", f"content-type {kind!r}: application/json is taken", "send the header content-type: application/json"
    )


def host_name(host: str) -> str:
    """A Host header or the part of an address behind `//`, without port and brackets, in lower case."""
    try:
        return (urlsplit(f"//{host.strip()}").hostname or "").rstrip(".")
    except ValueError:
        return host[:200].lower()


def _is_address(host: str) -> bool:
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
