"""`[store]`: which kinds there are, what a lake needs, and where a relative folder of one lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from leverwatch.config import ConfigError, read


def test_the_store_is_embedded_unless_a_lake_is_asked_for(tmp_path: Path) -> None:
    assert not read(None, tmp_path, {}).store.is_lake


def test_a_lakes_relative_folder_is_taken_from_the_files_folder_and_an_address_as_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "leverwatch.toml"
    file.write_text("[store]\nkind = 'delta'\nuri = 'lake'\n", encoding="utf-8")
    assert read(file, tmp_path, {}).store.uri == str(tmp_path / "lake")
    file.write_text("[store]\nkind = 'delta'\nuri = 's3://bucket/prefix'\n", encoding="utf-8")
    assert read(file, tmp_path, {}).store.uri == "s3://bucket/prefix"


def test_a_lake_can_be_named_by_the_environment_alone_with_options_as_json(tmp_path: Path) -> None:
    named = {"LEVERWATCH_STORE_KIND": "delta", "LEVERWATCH_STORE_URI": "s3://b/p", "LEVERWATCH_STORE_OPTIONS": '{"AWS_REGION": "eu-1"}'}
    store = read(None, tmp_path, named).store
    assert (store.is_lake, store.uri, store.options) == (True, "s3://b/p", {"AWS_REGION": "eu-1"})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("kind = 'delta'", "kind = 'delta' needs uri: a folder, or an address such as s3://bucket/prefix"),
        ("uri = '/lake'", "uri and options are of kind = 'delta'; kind is 'embedded'"),
        ("kind = 'delta'\nuri = 'http://x'", "uri = 'http://x': a folder is taken, or an address that begins with s3://"),
        ("kind = 'iceberg'", "taken: `embedded`, `delta`"),
        ("kind = 'delta'\nuri = '/lake'\ncommit_interval_s = 0", "commit_interval_s: Expected `float` > 0"),
    ],
)
def test_a_store_that_cannot_be_is_refused_with_what_is_taken(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "leverwatch.toml").write_text(f"[store]\n{text}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=told):
        read(None, tmp_path, {})
