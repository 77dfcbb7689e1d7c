"""The machine as it will be advertised."""

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from kettle.runtime import SettingsError
from kettle_services.startd.machine.survey import survey
from kettle_services.startd.settings import StartdSettings

MIB = 1 << 20


def test_what_running_jobs_wrote_is_not_missing_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Their claims still have it: what is free alone would take it away a second time.  A file of two names counts once.
    """
    (tmp_path / "dir_job" / "deep").mkdir(parents=True)
    (tmp_path / "images").mkdir()
    for file in (tmp_path / "dir_job" / "deep" / "data", tmp_path / "images" / "cached"):
        file.write_bytes(os.urandom(4 * MIB))
    (tmp_path / "dir_job" / "again").hardlink_to(tmp_path / "dir_job" / "deep" / "data")
    usage = SimpleNamespace(total=1000 * MIB, used=900 * MIB, free=100 * MIB)

    def measured(_path: Path) -> SimpleNamespace:
        return usage

    monkeypatch.setattr(shutil, "disk_usage", measured)

    disk = survey(StartdSettings(discover_gpus=False), tmp_path).total.disk

    assert 104 * 1024 <= disk < 105 * 1024


@pytest.mark.parametrize(
    "tag", ["State", "name", "SlotID", "true", "Target", "SlotCpus", "RemoteOwner", "ChildState", "Rack"]
)
def test_a_resource_is_called_nothing_that_ads_say_already(tmp_path: Path, tag: str) -> None:
    """A slot whose State is 2 would match nothing, and nobody would know why."""
    settings = StartdSettings(discover_gpus=False, machine_resources={tag: 2}, attributes={"Rack": "a"})

    with pytest.raises(SettingsError, match=f"{tag} cannot be the name of a resource"):
        survey(settings, tmp_path)


def test_resources_of_one_s_own_are_counted(tmp_path: Path) -> None:
    """Names of other programs' parts are free."""
    settings = StartdSettings(discover_gpus=False, machine_resources={"GPUs": 1, "FPGAs": ["f0"], "TPUs": 4})

    assert {"GPUs": 1, "FPGAs": 1, "TPUs": 4} == survey(settings, tmp_path).total.custom
