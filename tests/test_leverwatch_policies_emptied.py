"""A folder of policies that is empty by accident ends nothing: the server does not start. Nor does work on a folder that no server does."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from told_streams import BAD, POLICY, play

from alerts.policy import shipped
from leverwatch import policies_emptied
from leverwatch.config import Config, ConfigError
from leverwatch.engine_room import EngineRoom
from queries.store import Store

MINE = msgspec.structs.replace(POLICY, name="mine")


def test_an_empty_folder_is_refused_while_policies_of_it_judged(tmp_path: Path) -> None:
    store = Store(tmp_path / "data")
    play(store, range(1, 2), BAD, POLICY, MINE)
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "mine.cases.toml").write_text("")
    with pytest.raises(ConfigError, match=r"no policy is in it, and mine judged before; takes the files again, or no such key"):
        policies_emptied.check(store, str(folder), shipped())
    policies_emptied.check(store, "", shipped())
    policies_emptied.check(store, str(folder), [*shipped(), MINE])
    (folder / "other.toml").write_text("")
    policies_emptied.check(store, str(folder), shipped())
    store.close()


def test_a_removed_policy_is_ended_by_the_server_and_not_by_other_work_on_its_folder(tmp_path: Path) -> None:
    store = Store(tmp_path)
    play(store, range(1, 4), BAD, POLICY, MINE)
    store.close()
    room = EngineRoom(tmp_path, Config())
    judge = dict(room.steps())["judge"]
    judge()
    assert {row["policy"] for row in room.store.rows("select policy from current_verdicts")} == {"mine", POLICY.name}
    room.rounds.is_server = True
    judge()
    assert {row["policy"] for row in room.store.rows("select policy from current_verdicts")} == {POLICY.name}
    assert room.store.rows("select policy from flips where json_extract_string(notice, '$.reason_code') = 'policy_removed'") == [
        {"policy": "mine"}
    ]
    room.close()
