"""A batch system of shell programs with Slurm's names, for what a real one cannot be made to do."""

import shutil
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from kettle.testing.servers.fake_programs import FakePrograms

_NAMES: Final = ("sbatch", "squeue", "sacct", "scancel", "scontrol")
_SOURCE: Final = Path(__file__).with_name("fake_slurm.sh")


class FakeSlurm(FakePrograms):
    """One in a directory of its own; jobs wait until they are changed, unless it `runs` them."""

    def __init__(self, place: Path) -> None:
        super().__init__(place, "FAKE_SLURM")
        place.mkdir(parents=True, exist_ok=True)
        programs = place / "bin"
        programs.mkdir()
        for name in _NAMES:
            target = programs / name
            shutil.copy(_SOURCE, target)
            target.chmod(target.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        (place / "journal").touch()
        (place / "asked").touch()

    def set_mode(self, *words: str) -> None:
        """How it behaves from now on."""
        draft = self.place / "mode.new"
        draft.write_text(" ".join(words) + "\n")
        draft.rename(self.place / "mode")

    def jobs(self) -> Mapping[str, list[str]]:
        """Of each number the last line: number, name, state, reason, status, script."""
        lines = [line.split("|") for line in (self.place / "journal").read_text().splitlines()]
        return {fields[0]: fields for fields in lines}

    def change(self, number: str, state: str, *, reason: str = "None", status: int = 0) -> None:
        """Have a job be in another state."""
        self.change_all([number], state, reason=reason, status=status)

    def change_all(
        self, numbers: Iterable[str], state: str, *, reason: str = "None", status: int = 0
    ) -> None:
        """Have jobs be in another state, all at once."""
        known = self.jobs()
        lines = [
            f"{number}|{known[number][1]}|{state}|{reason}|{status}|{known[number][5]}\n"
            for number in numbers
        ]
        with (self.place / "journal").open("ab", buffering=0) as journal:  # nobody sees a part of it
            journal.write("".join(lines).encode())

    def add(self, number: str, name: str, state: str) -> None:
        """A job that came otherwise than by us."""
        with (self.place / "journal").open("ab", buffering=0) as journal:
            journal.write(f"{number}|{name}|{state}|None|0|\n".encode())

    def asked(self, name: str) -> int:
        """How often a command was run."""
        return (self.place / "asked").read_text().split().count(name)
