"""Scripts for hosts, run by the shells that hosts have."""

import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Final

from kettle.testing.patience import PATIENCE_S
from kettle_services.provisioner.domain import ssh_scripts

LEASE: Final = "lab-1-1"
STUBBORN: Final = """\
trap '' TERM
sleep 600 &
echo $! >"$machine/child.new" && mv "$machine/child.new" "$machine/child"
while :; do wait; done
"""
"""A machine that does not end when it is asked to, and has started something else."""
SHELLS: Final = ("dash", "bash", "sh", "busybox sh")
"""Those that this machine has are tried."""


def run(shell: str, script: str) -> str:
    done = subprocess.run(
        [*shell.split(), "-s"], input=script, capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    return done.stdout.strip()


def test_a_machine_that_does_not_end_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    """Whichever shell is `sh` there: that of Debian takes no `--` before the number of a group."""
    for shell in SHELLS:
        if shutil.which(shell.split(maxsplit=1)[0]) is not None:
            ends_although_it_does_not_want_to(shell, tmp_path / shell.partition(" ")[0])


def ends_although_it_does_not_want_to(shell: str, base: Path) -> None:
    assert ssh_scripts.MADE == run(shell, ssh_scripts.create(str(base), LEASE, STUBBORN, life=300, most=1))
    child = base / LEASE / "child"
    until = time.monotonic() + PATIENCE_S
    while not child.exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    watched = os.pidfd_open(int(child.read_text()))
    try:
        run(shell, ssh_scripts.delete(str(base), LEASE, 3600))
        assert "running" in run(shell, ssh_scripts.look(str(base), LEASE))
        assert ([], [], []) == select.select([watched], [], [], 0)
        run(shell, ssh_scripts.delete(str(base), LEASE, 0))
        assert select.select([watched], [], [], PATIENCE_S)[0]
    finally:
        os.close(watched)
