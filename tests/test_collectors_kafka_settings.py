"""What would break the promise of a commit, or could not be meant, is refused with the key and what is taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from collectors.kafka_settings import Kafka, consumer_settings, password
from leverwatch import config

BROKERS = ("kafka-0:9092",)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"brokers": ("kafka-0",)}, "brokers: 'kafka-0': host and port are taken"),
        ({"brokers": BROKERS, "group": " "}, "group is empty"),
        ({"topics": {"trace": "a"}}, "topics: 'trace' is no signal; did you mean 'traces'?"),
        ({"topics": {"traces": "^otlp.*"}}, "the name of one topic is taken"),
        ({"topics": {"traces": "a", "logs": "a"}}, "a topic of its own is taken for each signal"),
        ({"brokers": BROKERS, "topics": {}}, "topics is empty"),
        ({"options": {"enable.auto.commit": "true"}}, "'enable.auto.commit' is not taken: it is set by leverwatch"),
        ({"options": {"sasl.password": "x"}}, "'sasl.password' is not taken: the key sasl_password_file is taken"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused(keys: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=r"^\[kafka\] ") as refused:
        Kafka(**keys)
    assert told in str(refused.value)


def test_options_reach_the_client_and_commits_stay_ours(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("open\n")
    made = Kafka(("a:1", "b:2"), options={"security.protocol": "SASL_SSL"}, sasl_password_file=str(tmp_path / "secret"))
    told = consumer_settings(made, password(made))
    assert told["bootstrap.servers"] == "a:1,b:2"
    assert (told["security.protocol"], told["sasl.password"]) == ("SASL_SSL", "open")
    assert (told["enable.auto.commit"], told["enable.auto.offset.store"]) == (False, False)


def test_the_table_is_read_from_file_and_environment(tmp_path: Path) -> None:
    (tmp_path / "leverwatch.toml").write_text('[kafka]\nbrokers = ["a:1"]\ntopics = { traces = "t", logs = "l" }\n')
    given = {"LEVERWATCH_KAFKA_BROKERS": "b:2,c:3", "LEVERWATCH_KAFKA_OPTIONS": '{"security.protocol": "SSL"}'}
    read = config.read(None, tmp_path, given).kafka
    assert (read.brokers, read.topics, read.options) == (("b:2", "c:3"), {"traces": "t", "logs": "l"}, {"security.protocol": "SSL"})


def test_a_word_of_another_signal_is_told_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "leverwatch.toml").write_text('[kafka]\ntopics = { metric = "m" }\n')
    with pytest.raises(config.ConfigError, match=r"leverwatch\.toml: .*\[kafka\] topics: 'metric' is no signal; did you mean 'metrics'"):
        config.read(None, tmp_path, {})
