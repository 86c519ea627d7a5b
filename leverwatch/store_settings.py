"""`[store]` of the configuration in; where the tables are kept, and how much may wait or be held in memory, out."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from leverwatch.described import says

MIB = 1024 * 1024
NAMES_A_LAKE = "kind = 'delta' and uri name a lake, in leverwatch.toml in the folder of --data, or in the file of --config"
SCHEMES = ("s3", "s3a", "gs", "az", "abfs", "abfss", "file")


class StoreConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the tables are kept, and how much the store and the spool may hold."""

    kind: Annotated[
        Literal["embedded", "delta"], says("one data folder that one process owns, or a lake that any number of processes share")
    ] = "embedded"
    uri: Annotated[
        str, says("of `delta`: the lake's folder, or its address such as `s3://bucket/prefix`; every process names the same")
    ] = ""
    options: Annotated[
        dict[str, str], says("of `delta`: what its object store needs beside the usual `AWS_...` variables, such as `AWS_ENDPOINT_URL`")
    ] = {}
    commit_interval_s: Annotated[
        float, msgspec.Meta(gt=0, le=60), says("of `delta`: seconds from one commit of a collector to its next; senders wait as long")
    ] = 1.0
    commit_bytes: Annotated[
        int, msgspec.Meta(ge=1), says("of `delta`: bytes of exports that a collector commits before that time is over")
    ] = 24 * MIB
    mirror_bytes: Annotated[
        int,
        msgspec.Meta(ge=0),
        says("of `delta`: bytes of the newest requests, and as many of spans, that `serve` has in its folder; 0 is no bound"),
    ] = 20 * 1024 * MIB
    part_spans: Annotated[
        int,
        msgspec.Meta(ge=1),
        says("of `delta`: spans of an hour that one task of `leverwatch work` reads; an hour with more is made by several"),
    ] = 300_000
    memory_limit: Annotated[str, says("what the database may hold in memory")] = "2GB"
    limit_backlog_bytes: Annotated[int, says("bytes that may wait to be stored before senders are told to come again")] = 512 * MIB
    keep_content: Annotated[bool, says("store prompt and completion text, and the text of errors, which may quote them")] = False

    def __post_init__(self) -> None:
        if self.kind == "delta" and not self.uri:
            msg = "[store] kind = 'delta' needs uri: a folder, or an address such as s3://bucket/prefix"
            raise ValueError(msg)
        if self.kind == "embedded" and (self.uri or self.options):
            msg = "[store] uri and options are of kind = 'delta'; kind is 'embedded'"
            raise ValueError(msg)
        scheme = self.uri.partition("://")[0] if "://" in self.uri else ""
        if scheme and scheme not in SCHEMES:
            msg = (
                f"[store] uri = {self.uri!r}: a folder is taken, or an address that begins with {', '.join(f'{one}://' for one in SCHEMES)}"
            )
            raise ValueError(msg)

    @property
    def is_lake(self) -> bool:
        """Whether the tables are a lake's."""
        return self.kind == "delta"
