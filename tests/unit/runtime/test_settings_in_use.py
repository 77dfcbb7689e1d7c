"""What a service goes on with when its configuration has become unusable."""

from pathlib import Path

import pytest

from kettle.runtime import Settings, SettingsError
from kettle.runtime.settings import IN_USE
from kettle.runtime.settings_in_use import SettingsInUse, level_file

ENVIRON = {"KETTLE_HOME": "/nonexistent", "KETTLE_POOL": "p", "KETTLE_NATS_URL": "nats://u:secret@h:1"}


@pytest.fixture
def in_use(tmp_path: Path) -> SettingsInUse:
    return SettingsInUse.from_environ({IN_USE: str(tmp_path / "in-use" / "schedd.json")})


def test_a_mistake_leads_back_to_what_was_in_use(in_use: SettingsInUse) -> None:
    """Only what the service has worked with counts; the master's word on servers is newer than the file."""
    wrong = {**ENVIRON, "KETTLE_LOG_LEVEL": "loud"}
    with pytest.raises(SettingsError):
        in_use.load(Settings, "schedd", wrong)
    in_use.keep("schedd", Settings.load("schedd", environ={**ENVIRON, "KETTLE_LOG_LEVEL": "debug"}))

    settings, why = in_use.load(Settings, "schedd", {**wrong, "KETTLE_NATS_URL": "nats://h:2"})

    assert ("debug", "nats://h:2", "p") == (settings.log_level, settings.nats_url, settings.pool)
    assert "KETTLE_LOG_LEVEL" in why
    assert ("warning", "") == _level(in_use, "warning")


def test_what_did_not_work_is_not_tried_twice(in_use: SettingsInUse) -> None:
    """
    After a start that failed for its settings the former ones are used; others are tried, and a new word is heard.
    """
    former, bad = (
        Settings.load("schedd", environ=ENVIRON | {"KETTLE_LOG_LEVEL": x}) for x in ("info", "debug")
    )
    assert not in_use.refuse("schedd", bad, "there is nothing to go back to")
    in_use.keep("schedd", former)
    assert not in_use.refuse("schedd", former, "it is the same")
    assert in_use.refuse("schedd", bad, "no room")
    assert ("info", "no room") == _level(in_use, "debug")
    assert ("warning", "") == _level(in_use, "warning")
    in_use.keep("schedd", former)
    assert ("debug", "") == _level(in_use, "debug")


def test_the_file_is_for_its_owner(in_use: SettingsInUse, tmp_path: Path) -> None:
    """It holds passwords."""
    in_use.keep("schedd", Settings.load("schedd", environ=ENVIRON))
    [file] = (tmp_path / "in-use").iterdir()
    assert (0o600, 0o700) == (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777)
    assert "secret" in file.read_text()


def test_without_a_master_nothing_is_kept() -> None:
    """A service that was started by hand refuses what it cannot use."""
    nothing = SettingsInUse.from_environ({})
    nothing.keep("schedd", Settings())
    assert nothing.variables() is None
    with pytest.raises(SettingsError):
        nothing.load(Settings, "schedd", {"KETTLE_LOG_LEVEL": "loud"})


def _level(in_use: SettingsInUse, level: str) -> tuple[str, str]:
    settings, why = in_use.load(Settings, "schedd", {**ENVIRON, "KETTLE_LOG_LEVEL": level})
    return settings.log_level, why


def test_a_level_for_now(in_use: SettingsInUse, tmp_path: Path) -> None:
    """What an administrator wants of a log for now stands beside the settings in use; nonsense is none."""
    assert "" == SettingsInUse(None).log_level() == in_use.log_level()
    in_use.keep("schedd", Settings.load("schedd", environ=ENVIRON))
    path = level_file(tmp_path / "in-use" / "schedd.json")
    path.write_text('"debug"')
    assert "debug" == in_use.log_level()
    path.write_text('"loud"')
    assert "" == in_use.log_level()
