"""
The units of systemd that the repository has: right for systemd, as closed as they can be, and those that commands
write.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kettle.pool.units import Kind, name_of, render

LARGEST_EXPOSURE: dict[Kind, float] = {"server": 3.0, "access-point": 3.4, "worker": 7.7}
"""What systemd finds; the machine for jobs of others has to be able to close these in."""
KINDS = tuple(LARGEST_EXPOSURE)


@pytest.mark.parametrize("kind", KINDS)
def test_the_units_are_those_that_commands_write(top: Path, kind: Kind) -> None:
    """A unit that is copied by hand is the one that joining writes."""
    made = render(kind, Path("/var/lib/kettle/pool"), Path("/usr/bin/kettle"))
    assert made == (top / "infra/systemd" / name_of(kind)).read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_systemd_finds_nothing_wrong(tmp_path: Path, kind: Kind) -> None:
    """No name is misspelt, and the exposure is not larger than it was."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed (Debian: systemd)")
    unit = tmp_path / name_of(kind)
    unit.write_text(render(kind, Path("/var/lib/kettle/pool"), Path("/usr/bin/env")))

    def said(*words: str) -> str:
        done = subprocess.run(
            [program, *words, str(unit)], capture_output=True, text=True, timeout=60, check=False
        )
        assert 0 == done.returncode, done.stderr
        return done.stdout + done.stderr

    assert "" == said("verify", "--man=no")
    exposure = re.search(r"exposure level for \S+: (\d+\.\d+)", said("security", "--offline=true"))
    assert exposure is not None
    assert float(exposure[1]) <= LARGEST_EXPOSURE[kind]
