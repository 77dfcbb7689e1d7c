"""A transform as a whole: what it is for, and what it makes of an ad."""

import random
import re
from typing import Final

import msgspec

from kettle.transforms.run import Run
from kettle.transforms.statements import PATTERNED, Statement
from kettle_wire.ads.types import Ad

_OPEN: Final = frozenset({*PATTERNED.values(), "evalmacro"})
"""Statements after which the text does not show which attributes matter."""
_PASTING: Final = re.compile(r"\(\s*my\.", re.IGNORECASE)
_WHOLE: Final = re.compile(
    r"\b(eval|unresolved|parent|root|toplevel)\b|\b(my|self)\b(?!\.)|\]\s*\.|\[", re.IGNORECASE
)
"""
What looks at attributes that it does not name: see `kettle.classad.conceals`; there may be macros in the text.
"""


class Outcome(msgspec.Struct, frozen=True):
    """The result for an ad."""

    ad: Ad
    complaints: list[str]
    """Of the statements that could not be carried out, and were skipped."""


class Transform(msgspec.Struct, frozen=True):
    """What is done to each ad that meets its requirements."""

    source: str
    statements: tuple[Statement, ...]
    protected: frozenset[str] = frozenset()
    """In lower case, attributes that no pattern reaches."""
    requirements: tuple[str, ...] = ()
    """The texts of its REQUIREMENTS, all of which must be true."""

    def apply(
        self,
        ad: Ad,
        *,
        now: int = 0,
        macros: dict[str, str] | None = None,
        entropy: random.Random | None = None,
    ) -> Outcome | None:
        """
        A changed copy of an ad; None: its requirements are not true of it.

        `macros`, by lower-case name, are shared by the transforms of one chain: what one defines the next one sees.
        """
        run = Run(
            ad,
            now=now,
            macros={} if macros is None else macros,
            entropy=entropy or random.SystemRandom(),
        )
        return Outcome(run.ad, run.complaints) if self.change(run) else None

    def change(self, run: Run) -> bool:
        """Change the ad of a run that others may have changed; False: its requirements are not true of it."""
        if not run.meets(self.requirements):
            return False
        run.carry_out(self.statements, self.source, self.protected)
        return True

    @property
    def words(self) -> frozenset[str] | None:
        """
        In lower case all that could be the name of an attribute; None: any could matter.

        It does where a pattern matches names, and where what a submitter wrote becomes part of an expression.
        """
        if any(
            each.word in _OPEN or _PASTING.search(each.text) or _WHOLE.search(each.text)
            for each in self.statements
        ):
            return None
        text = " ".join(f"{each.name} {each.text}" for each in self.statements)
        return frozenset(re.findall(r"[a-z_][a-z0-9_]*", text.lower()))
