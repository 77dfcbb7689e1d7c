"""Where in the site's files something stands, and what is wrong there."""

from collections.abc import Sequence

import msgspec


class Place(msgspec.Struct, frozen=True):
    """A line of a file; line 0: the file as a whole."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class Because(msgspec.Struct, frozen=True):
    """A rule that took part in a decision."""

    place: Place
    rule: str
    """The rule as it was written."""
    captured: tuple[str, ...] = ()
    r"""What the groups of its pattern matched, from `\1` on."""

    def __str__(self) -> str:
        groups = "".join(f", \\{number} = {text!r}" for number, text in enumerate(self.captured, 1))
        return f"{self.place}: {self.rule}{groups}"


class Finding(msgspec.Struct, frozen=True):
    """One thing that is wrong with a file, or that only looks so (`warning`)."""

    place: Place
    sentence: str
    warning: bool = False

    def __str__(self) -> str:
        return f"{self.place}: {'warning: ' if self.warning else ''}{self.sentence}"


def refusals(findings: Sequence[Finding]) -> list[Finding]:
    """What makes a file unusable."""
    return [each for each in findings if not each.warning]
