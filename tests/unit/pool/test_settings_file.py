"""Settings that a command adds to a file that is somebody else's."""

import tomllib
from pathlib import Path

import pytest

from kettle.pool.settings_file import SettingsFileError, merged, without

PATH = Path("kettle.toml")
WANTED = {"kettle": {"pool": "physics"}, "startd": {"name": "n1"}}
THEIRS = """\
# my own
[startd]  # this machine
num_cpus = 4  # two are mine

[schedd]
lease = 60.0
"""


def test_what_is_there_stays() -> None:
    """Comments, order and other settings; what is missing is added to its table, or in a new one."""
    text, added = merged(PATH, THEIRS, WANTED, {})
    assert added == WANTED
    assert {
        "kettle": {"pool": "physics"},
        "startd": {"name": "n1", "num_cpus": 4},
        "schedd": {"lease": 60.0},
    } == tomllib.loads(text)
    assert [line for line in THEIRS.splitlines() if line.strip()] == [
        line for line in text.splitlines() if line in THEIRS.splitlines() and line.strip()
    ]


def test_what_was_added_can_be_taken_away() -> None:
    """And nothing else: the file is as it was."""
    text, added = merged(PATH, THEIRS, WANTED, {})
    assert without(text, added) == THEIRS


def test_said_twice_is_said_once() -> None:
    """What an earlier call added is replaced by what is wanted now."""
    text, added = merged(PATH, THEIRS, WANTED, {})
    assert (text, added) == merged(PATH, text, WANTED, added)
    other, _ = merged(PATH, text, {"kettle": {"pool": "chemistry"}}, added)
    assert "chemistry" == tomllib.loads(other)["kettle"]["pool"]
    assert "name" not in tomllib.loads(other)["startd"]


def test_a_changed_setting_is_not_taken_away() -> None:
    """It is the administrator's from then on."""
    text, added = merged(PATH, THEIRS, WANTED, {})
    assert {"name": "other", "num_cpus": 4} == tomllib.loads(without(text.replace('"n1"', '"other"'), added))[
        "startd"
    ]


def test_another_value_is_refused() -> None:
    """With the file, the setting, and both values; save where it is the administrator's to say."""
    said = 'administrators of [startd] is ["grace"], and what is wanted is ["ada"]'
    wanted = {"startd": {"administrators": ["ada"]}}
    there = '[startd]\nadministrators = ["grace"]\n'
    with pytest.raises(SettingsFileError) as refused:
        merged(PATH, there, wanted, {})
    assert f"kettle.toml: {said}: remove it" == str(refused.value)
    assert (there, {}) == merged(PATH, there, wanted, {}, theirs={"administrators"})


def test_what_is_no_toml_is_refused() -> None:
    """With the file and the place."""
    with pytest.raises(SettingsFileError, match=r"kettle\.toml is no TOML: .*line 1"):
        merged(PATH, "[startd\n", WANTED, {})
