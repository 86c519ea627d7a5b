"""`[[holdouts]]`: what may stand there, and that it reaches the comparison of arms and the diagnosis."""

from __future__ import annotations

from pathlib import Path

import pytest
from replica_cells import BLOCK, START, compared, fixed, put

from leverwatch import config, doctor_text
from leverwatch.config import Config, ConfigError
from leverwatch.engine_room import EngineRoom
from leverwatch.holdout_settings import Holdout, stated
from pipeline import arm_split, settle
from queries import files

STATED = '[[holdouts]]\nlever = "speculation"\ncontrol_share = 0.05\n'


def read(folder: Path, text: str) -> Config:
    (folder / "leverwatch.toml").write_text(text)
    return config.read(None, folder, {})


def test_a_share_is_read_with_what_it_is_about(tmp_path: Path) -> None:
    found = read(tmp_path, STATED + 'model = "m"\nrequests_together = 4\n').holdouts
    assert found == (Holdout("speculation", 0.05, "m", "", 4.0),)
    assert stated(found) == (arm_split.Holdout("speculation", 0.05, "m", "", 4.0),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[holdouts]]\nlever = "speculatoin"\ncontrol_share = 0.05', "lever 'speculatoin' is unknown; did you mean 'speculation'"),
        ('[[holdouts]]\nlever = "speculation"', "missing required field `control_share`"),
        (
            '[[holdouts]]\nlever = "speculation"\ncontrol_share = 5',
            r"control_share \(table 1\): Expected `float` <= 0.999",
        ),
        ('[[holdouts]]\nlever = "speculation"\ncontrol_share = 0.0', "taken: number from 0.001"),
        ('[[holdouts]]\nlever = "speculation"\ncontrol_share = 1e-300', "taken: number from 0.001"),
        (STATED + "requests_together = inf", "requests_together"),
        (STATED + "requests_together = 0.5", "requests_together .*; taken: number from 1"),
        (STATED + "share = 1", "key 'share' is unknown"),
    ],
)
def test_a_share_that_cannot_be_meant_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read(tmp_path, text)


def test_the_first_that_fits_a_segment_counts() -> None:
    holdout = arm_split.Holdout("speculation", 0.05, model="m")
    assert holdout.covers("speculation", '{"hardware":"h100","model":"m"}')
    assert not holdout.covers("speculation", '{"model":"n"}')
    assert not holdout.covers("prefix_caching", '{"model":"m"}')
    assert arm_split.Holdout("speculation", 0.05).covers("speculation", "{}")


def test_a_stated_share_reaches_the_comparison_of_a_served_folder(tmp_path: Path) -> None:
    room = EngineRoom(tmp_path / "data", read(tmp_path, STATED))
    put(room.store, range(4), lambda *_: (400, 100), [0.0, 0.0])
    with room.store.write() as transaction:
        ended = {"ended_at": START + BLOCK * 4 + settle.LAG}
        transaction.execute("insert into watermarks values ('s', $ended_at, $ended_at)", ended)
    room.work_once()
    asked = "select sample_ratio_off, intended_control_share from effects where metric = 'tpot_s' order by until desc limit 1"
    assert room.store.rows(asked) == [{"sample_ratio_off": True, "intended_control_share": pytest.approx(0.05)}]
    room.close()


def test_doctor_says_of_each_control_whether_it_may_decide_and_what_it_lacks(tmp_path: Path) -> None:
    room = EngineRoom(tmp_path, Config())
    put(room.store, range(10), fixed(), [0.0] * 4, model="fixed")
    put(room.store, range(10), lambda *_: (80, 20), [0.0, 0.0], model="split")
    compared(room.store, 10, [arm_split.Holdout("speculation", 0.2, model="split")])
    rows = room.store.rows(files.question("doctor_control"), {"since": START, "until": START + BLOCK * 10})
    room.close()
    assert [(row["lever"], row["permission"], row["intended_control_share"]) for row in rows] == [
        ("speculation", "refused", None),
        ("speculation", "same_replicas", pytest.approx(0.2)),
    ]
    lines = [doctor_text._control(row) for row in rows]
    assert "decides nothing: 1 of 4 replicas in control at once" in lines[0]
    assert lines[0].endswith("its share is not checked: no [[holdouts]] states it")
    assert lines[1].endswith("split otherwise than intended in 0 of 1 segments")
