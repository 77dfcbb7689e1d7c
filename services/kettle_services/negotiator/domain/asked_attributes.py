"""What the machines of a pool ask of jobs, which schedds therefore have to show."""

from typing import Final

from kettle.classad import parse, references
from kettle.classad.errors import ClassAdError
from kettle.classad.reference_analysis import trimmed
from kettle.jobs.significant_attributes import BASIC, MOST, asks
from kettle_wire.ads import Ad, Expr

_ALWAYS: Final = frozenset(name.lower() for name in BASIC)
_MOST_TEXTS: Final = 10_000
"""Expressions that are remembered."""


class AskedAttributes:
    """
    What the machines of a pool have asked of jobs so far.

    It only grows: a machine that is away for a while does not renumber everybody's jobs.
    """

    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()
        """In lower case, without those that are always significant."""
        self._read: dict[str, frozenset[str]] = {}
        """Expression -> the names that it has without a scope, which may be of the machine itself."""

    def note(self, machine: Ad) -> None:
        """
        A machine says this of itself: what all its expressions ask of the job, whatever they are for, counts.
        """
        for value in machine.values():
            # Lists are no policies, and those of a machine's parts are new with each job that begins or ends.
            if type(value) is Expr and not value.expr.startswith("{"):
                text = value.expr
                free = self._read.get(text)
                if free is None:
                    free = self._read_expression(text)
                if not free <= machine.keys():
                    own = {name.lower() for name in machine}
                    self._add({name.lower() for name in free} - own)

    def note_expression(self, text: str) -> None:
        """A rule of the pool asks this of jobs, or of something else."""
        self._add({name.lower() for name in self._read_expression(text)})

    def _read_expression(self, text: str) -> frozenset[str]:
        """Note what an expression asks of the job for certain; returns what it may ask."""
        if len(self._read) >= _MOST_TEXTS:
            self._read.clear()
        try:
            external = references(parse(text)).external
        except ClassAdError:
            external = frozenset[str]()
        asked = {trimmed(name) for name in external if name[:7].upper() == "TARGET."}
        self._add({name.lower() for name in asked})
        own = {name for name in external - asked if "." not in name}
        found = self._read[text] = frozenset(own)
        return found

    def _add(self, names: set[str]) -> None:
        new = {name for name in names - self.names - _ALWAYS if not asks(name)}
        if new:
            self.names |= frozenset(sorted(new)[: MOST - len(self.names)])
