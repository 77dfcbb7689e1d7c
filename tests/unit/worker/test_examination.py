"""What a machine proves of itself."""

import re
from pathlib import Path

import pytest

from kettle.pool import open_home
from kettle_services.worker.examination import checks
from kettle_wire.examination import Examination


def found(place: Path, wanted: Examination, *, skew: float | None = None) -> list[str]:
    """What is wrong with this machine."""
    return [why for check in checks(wanted, open_home(place / "home"), lambda: skew) if (why := check.work())]


def test_a_machine_that_is_asked_for_nothing_is_fit(tmp_path: Path) -> None:
    """Also if its clock is an hour wrong, or nobody has said how wrong it is."""
    assert [] == found(tmp_path, Examination())
    assert [] == found(tmp_path, Examination(disk=1), skew=-3600.0)


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (Examination(disk=2**40), "MB have to be"),
        (Examination(skew=60.0), "the clock is 100 s ahead of the pool's"),
        (Examination(gpus=10_000), r"GPU\(s\) were found, and 10000 have to be"),
        (Examination(script="#!/bin/sh\necho the disk is /bad >&2\nexit 3\n"), "status 3: the disk is /bad"),
        (Examination(script="#!/bin/sh\nexec sleep 60\n", script_timeout=0.1), "did not end within 0.1 s"),
        (Examination(script="#!/not/there\n"), "cannot be run"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(tmp_path: Path, wanted: Examination, why: str) -> None:
    """And nothing else is."""
    (said,) = found(tmp_path, wanted, skew=100.0)
    assert re.search(why, said)


def test_the_program_of_the_site_sees_nothing_of_the_pool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands where jobs work, and is gone afterwards."""
    monkeypatch.setenv("KETTLE_HOME", "/elsewhere")
    place = tmp_path / "home"
    script = f'#!/bin/sh\nenv | grep -q ^KETTLE_HOME= && exit 1\ntest "$PWD" = {place / "execute"}\n'
    assert [] == found(tmp_path, Examination(script=script))
    assert not (place / "examination").exists()
