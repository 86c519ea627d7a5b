"""The page on configuration says every key as the code has it."""

from __future__ import annotations

from pathlib import Path

import docs_blocks
import msgspec
import pytest

from collectors import dialects, facts
from collectors.kafka_settings import Kafka
from leverwatch import config
from leverwatch.access_settings import Access, Identity, Link, Price, Registry, Tls, Token
from leverwatch.config import Alerts, Serve, SqlConfig, StoreConfig, variables
from leverwatch.config_page import MARK, _meaning, tables

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"


def test_the_tables_are_those_of_the_code(update_golden: bool) -> None:
    head, _, made = PAGE.read_text(encoding="utf-8").partition(MARK)
    if update_golden:
        PAGE.write_text(f"{head}{MARK}\n{tables()}", encoding="utf-8")
    else:
        assert made == f"\n{tables()}", "run `make golden`"


def test_every_variable_stands_on_the_page() -> None:
    made = tables()
    assert [name for name in variables() if f"`{name}`" not in made] == []


@pytest.mark.parametrize("kind", [Serve, StoreConfig, Kafka, SqlConfig, Alerts, Access, Tls, Identity, Registry, Token, Link, Price])
def test_every_key_says_what_it_means(kind: type[msgspec.Struct]) -> None:
    assert [field.name for field in msgspec.structs.fields(kind) if not _meaning(field.type)] == []


EXAMPLES = [block.text for block in docs_blocks.blocks("docs/configuration.md") if block.language == "toml"]


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_on_the_page_is_taken(tmp_path: Path, example: str) -> None:
    (tmp_path / "leverwatch.toml").write_text(example)
    read = config.read(None, tmp_path, {})
    assert read != config.Config()
    assert facts.defaults(read.defaults, dialects.deployment()).keys() == ({"hardware", "lever.prefix_caching"} if read.defaults else set())
