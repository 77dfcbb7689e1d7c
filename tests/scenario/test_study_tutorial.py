"""
The tutorial about the simulator works as it stands: it needs no pool, and its drawings are those that it shows.
"""

import os
import sys
from pathlib import Path
from typing import Final

import pytest

from kettle.testing.commands.running import execute

from .test_tutorials import TUTORIALS, script, steps

LONG: Final = "KETTLE_TEST_LONG"
WITHIN_S: Final = 900.0
DRAWINGS: Final = ("hours", "minutes")


@pytest.mark.skipif(
    LONG not in os.environ, reason=f"it takes minutes: eleven simulations ({LONG}=1 has them played)"
)
@pytest.mark.asyncio
async def test_the_study_comes_to_what_the_tutorial_says(tmp_path: Path) -> None:
    """Every command prints what the page shows, to the last digit, and draws what the page has beside it."""
    found = steps((TUTORIALS / "half-life-study.md").read_text())
    assert 6 == sum(bool(step.command) for step in found)
    environ = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path)}
    said = await execute(["sh", "-c", script(found, tmp_path)], tmp_path, environ, within_s=WITHIN_S)
    assert 0 == said.status, said
    for number, step in enumerate(found):
        if step.shown:
            printed = (tmp_path / f"{number}.out").read_text().splitlines()
            assert _lines(step.shown) == _lines(printed), step.command
    for name in DRAWINGS:
        shown = (TUTORIALS / f"half-life-{name}.svg").read_text()
        assert shown == (tmp_path / name / "shares.svg").read_text()


def _lines(said: list[str]) -> list[str]:
    """Notes come before or after the table, by how a shell keeps both in one file."""
    return sorted(line.rstrip() for line in said if line.strip())
