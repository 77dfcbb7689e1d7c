"""
A batch system of programs with the names of OpenPBS's, Torque's, LSF's or HTCondor's, whose jobs run on this machine.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kettle.testing.servers.fake_programs import FakePrograms

_SOURCE: Final = Path(__file__).with_name("fake_batch_commands.py")
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "pbs": ("qsub", "qselect", "qstat", "qdel", "qhold", "qrls", "qsig"),
    "lsf": ("bsub", "bjobs", "bqueues", "bkill", "bstop", "bresume"),
    "htcondor": (
        "condor_submit", "condor_q", "condor_history", "condor_rm", "condor_hold", "condor_suspend", "condor_release", "condor_continue",
    ),
}  # fmt: skip


class FakeBatch(FakePrograms):
    """One in a directory of its own."""

    def __init__(self, place: Path, kind: str) -> None:
        """`kind`: `pbs`, `torque`, `lsf` or `htcondor`."""
        super().__init__(place, "FAKE_BATCH")
        self.kind: Final = kind
        programs = place / "bin"
        programs.mkdir(parents=True)
        for name in _NAMES["pbs" if kind == "torque" else kind]:
            program = programs / name
            program.write_text(f'#!/bin/sh\nexec {sys.executable} -ISE {_SOURCE} {name} "$@"\n')
            program.chmod(0o755)
        (place / "kind").write_text(kind)
        self.set_mode("")

    def set_mode(self, word: str) -> None:
        """`down`: it does not answer; empty: it does."""
        draft = self.place / "mode.new"
        draft.write_text(word)
        draft.rename(self.place / "mode")

    def jobs(self) -> list[dict[str, Any]]:
        """All that it was given, in this order."""
        file = self.place / "state"
        return list(json.loads(file.read_text())["jobs"].values()) if file.exists() else []

    def asked(self, name: str) -> int:
        """How often a command was run."""
        return (self.place / "asked").read_text().split().count(name)
