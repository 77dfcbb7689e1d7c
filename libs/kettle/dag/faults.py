"""What can be wrong with a DAG file, and how many of its faults are told."""

from collections.abc import Sequence

import msgspec


class Fault(msgspec.Struct, frozen=True, gc=False):
    """One thing that is wrong, or, as a warning, strange."""

    file: str
    """The path as it was given; a spliced or included file has its own."""
    line: int
    """Counted from 1; 0 if the file as a whole is meant."""
    sentence: str

    def __str__(self) -> str:
        """The place and the sentence, as people read it."""
        return (
            f"{self.file}, line {self.line}: {self.sentence}"
            if self.line
            else f"{self.file}: {self.sentence}"
        )


class DagError(Exception):
    """A DAG is refused, for the first thing that is wrong with it."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault


class PlacelessFault(ValueError):  # noqa: N818 - what it becomes is a Fault
    """Something is wrong with one command; the message is the sentence, and the caller knows the line."""


class Faults:
    """Collects what is wrong, or stops at the first fault."""

    def __init__(self, *, stop: bool, most: int | None = None) -> None:
        """`most`: so many faults end it, too, and more warnings are not told; None: there may be any."""
        self._stop = stop
        self._most = most
        self._found: list[Fault] = []
        self._warnings: list[Fault] = []

    def add(self, file: str, line: int, sentence: str) -> None:
        """Record a fault, or raise it as a `DagError`, if the first one ends it all."""
        fault = Fault(file, line, sentence)
        if self._stop:
            raise DagError(fault)
        self._found.append(fault)
        if self._most is not None and len(self._found) >= self._most:
            raise DagError(Fault(file, line, f"{self._most:,} faults are found, and no more are looked for"))

    def warn(self, file: str, line: int, sentence: str) -> None:
        """Record something that is strange and can be carried out."""
        count = len(self._warnings)
        if self._most is None or count < self._most:
            self._warnings.append(Fault(file, line, sentence))
        elif count == self._most:
            self._warnings.append(Fault(file, line, "more warnings are not told"))

    @property
    def found(self) -> Sequence[Fault]:
        """All faults, in the order in which they were found."""
        return self._found

    @property
    def warnings(self) -> Sequence[Fault]:
        """All warnings, in the order in which they were found."""
        return self._warnings
