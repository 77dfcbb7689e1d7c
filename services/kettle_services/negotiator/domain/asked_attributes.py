"""What the machines of a pool ask of jobs, which schedds therefore have to show."""

from typing import Final, NamedTuple

from kettle.classad import parse, references
from kettle.classad.errors import ClassAdError
from kettle.classad.reference_analysis import trimmed
from kettle.jobs.significant_attributes import BASIC, MOST, asks
from kettle_wire.ads import Ad, Expr

_ALWAYS: Final = frozenset(name.lower() for name in BASIC)
_MOST_TEXTS: Final = 10_000
"""Expressions that are remembered."""


class _Free(NamedTuple):
    """The names that an expression has without a scope, which may be of the machine itself."""

    written: frozenset[str]
    lower: frozenset[str]


class AskedAttributes:
    """
    What the machines of a pool have asked of jobs so far.

    It only grows: a machine that is away for a while does not renumber everybody's jobs.
    """

    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()
        """In lower case, without those that are always significant."""
        self._known = _ALWAYS
        """These, and those that are always significant."""
        self._read: dict[str, _Free] = {}
        """By expression."""

    def note(self, machine: Ad) -> None:
        """
        A machine says this of itself: what all its expressions ask of the job, whatever they are for, counts.
        """
        own: frozenset[str] | None = None  # in lower case: each job that begins or ends brings an ad
        for value in machine.values():
            # Lists are no policies, and those of a machine's parts are new with each job that begins or ends.
            if type(value) is Expr and not value.expr.startswith("{"):
                text = value.expr
                free = self._read.get(text)
                if free is None:
                    free = self._read_expression(text)
                if free.lower <= self._known or free.written <= machine.keys():
                    continue
                if own is None:
                    own = frozenset(map(str.lower, machine))
                self._add(free.lower - own)

    def note_expression(self, text: str) -> None:
        """A rule of the pool asks this of jobs, or of something else."""
        self._add(self._read_expression(text).lower)

    def _read_expression(self, text: str) -> _Free:
        """Note what an expression asks of the job for certain; returns what it may ask."""
        if len(self._read) >= _MOST_TEXTS:
            self._read.clear()
        try:
            external = references(parse(text)).external
        except ClassAdError:
            external = frozenset[str]()
        asked = {trimmed(name) for name in external if name[:7].upper() == "TARGET."}
        self._add(frozenset(name.lower() for name in asked))
        # What jobs always show is nothing to look for in the ad of each machine.
        own = frozenset(name for name in external - asked if "." not in name and not asks(name.lower()))
        found = self._read[text] = _Free(own, frozenset(map(str.lower, own)))
        return found

    def _add(self, names: frozenset[str]) -> None:
        new = {name for name in names - self._known if not asks(name)}
        if new:
            self.names |= frozenset(sorted(new)[: MOST - len(self.names)])
            self._known = self.names | _ALWAYS
