"""
The names of one file.

Each SPLICE opens a scope of its own; an INCLUDE does not.  A scope finds nodes, splices and pins by the names that its file
uses for them, and knows how they are called outside: with the names of the splices around it in front.
"""

from dataclasses import dataclass, field
from typing import Self

from kettle.dag.language.keywords import is_all_nodes


@dataclass(slots=True, eq=False)
class Scope:
    """What the names of one file mean."""

    prefix: str = ""
    """In front of the names of its nodes outside: `outer+inner+`."""
    directory: str = ""
    """In front of the paths of its file: the DIR of its SPLICE, and of those around it."""
    number: int | None = None
    """In front of each name, if there are several files on the command line."""
    outer: Self | None = None
    nodes: dict[str, int] = field(default_factory=dict)
    ordinary: list[int] = field(default_factory=list)
    """What ALL_NODES stands for: JOB and SUBDAG nodes of this file and of those that it has included so far."""
    splices: dict[str, "SplicedScope"] = field(default_factory=dict)
    descriptions: dict[str, str] = field(default_factory=dict)
    pins_in: dict[int, list[int]] = field(default_factory=dict)
    pins_out: dict[int, list[int]] = field(default_factory=dict)

    def spelt(self, name: str) -> str:
        """A name as it is known within this scope."""
        return name if self.number is None or is_all_nodes(name) else f"{self.number}.{name}"

    def full(self, name: str) -> str:
        """The name that is unique in the whole DAG."""
        return self.prefix + self.spelt(name)

    def category(self, name: str) -> str:
        """A category as it is known in the whole DAG; a `+` in front makes it one for all scopes."""
        return name if name.startswith("+") else self.prefix + name

    def description(self, name: str) -> str | None:
        """A SUBMIT-DESCRIPTION of this file, or of one around it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.descriptions:
                return scope.descriptions[name]
            scope = scope.outer
        return None


@dataclass(slots=True)
class SplicedScope:
    """What the file around a splice can use of it."""

    scope: Scope
    initial: list[int]
    """Its nodes without parents: what it is as a CHILD."""
    terminal: list[int]
    """Its nodes without children: what it is as a PARENT."""
