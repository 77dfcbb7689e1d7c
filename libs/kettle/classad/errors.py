"""
What can go wrong with a ClassAd.

    ClassAdError
    ├── ClassAdParseError     the text is no expression, or no ad
    ├── EvaluationFailed      the evaluation gave up: an argument that no function can serve, or
    │   └── BudgetExceeded        the expression goes on too deeply, or (StepsExceeded) too long
    └── NotRepresentable      a value that the chosen text form cannot carry

The ClassAd *value* ``error`` is none of these: it is data, the result of a sound evaluation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from kettle.classad.nodes import Node


class ClassAdError(Exception):
    """Whatever this library raises."""


class ClassAdParseError(ClassAdError, ValueError):
    """
    The text does not follow the grammar.

    `text` is what was read, `at` the offset of the offending character in it.
    `line` and `column` say the same to a reader: both count from 1, the line from the start of the file.
    """

    def __init__(self, sentence: str, *, text: str, at: int, first_line: int = 1) -> None:
        self.sentence = sentence
        self.text = text
        self.at = at
        self.line = first_line + text.count("\n", 0, at)
        self.column = at - text.rfind("\n", 0, at)
        super().__init__(f"{sentence}, at line {self.line}, column {self.column}: {self._excerpt(60)[0]!r}")

    def excerpt(self, width: int = 100) -> str:
        """
        The offending line, or `width` characters of it, and below it a caret under the offending character.
        """
        part, caret = self._excerpt(width)
        return f"{''.join(c if c.isprintable() else ' ' for c in part)}\n{' ' * caret}^"

    def within(self, text: str, offset: int, first_line: int) -> ClassAdParseError:
        """The error with its place in `text`, of which the refused text is the part at `offset`."""
        return ClassAdParseError(self.sentence, text=text, at=offset + self.at, first_line=first_line)

    def _excerpt(self, width: int) -> tuple[str, int]:
        """A part of the offending line with the offending character in it, and where it is there."""
        start = self.at - self.column + 1
        end = self.text.find("\n", self.at)
        end = len(self.text) if end < 0 else end
        first = max(start, min(self.at - width // 2, end - width))
        return self.text[first : min(end, first + width)], self.at - first


class EvaluationFailed(ClassAdError):  # noqa: N818 - it names what happened; the value `error` is something else
    """
    The evaluation has no value, not even ``error``.

    A policy expression that fails counts as not true, an attribute that fails as absent.
    """


class BudgetExceeded(EvaluationFailed):
    """The expression goes on too deeply, or too long: it would cost more than its context allows."""

    def __init__(self, sentence: str = "the expression goes on too deeply") -> None:
        super().__init__(sentence)
        BUDGETS.count(sentence)


class StepsExceeded(BudgetExceeded):
    """Too long: the evaluation has no steps left, so that no part of it can go on either."""

    def __init__(self, sentence: str = "the expression goes on too long") -> None:
        super().__init__(sentence)


class Budgets:
    """How often a budget has been exceeded in this process, and who wants to know; no value depends on it."""

    __slots__ = ("blame", "exceeded", "watch")

    def __init__(self) -> None:
        self.exceeded = 0
        self.watch: Callable[[str, int], None] | None = None
        """Hears why it was exceeded, and how often that has happened."""
        self.blame: Callable[[Node | str], None] | None = None
        """Hears of which expression, or attribute, there is no value for that."""

    def count(self, sentence: str) -> None:
        """It has happened once more."""
        self.exceeded += 1
        if self.watch is not None:
            self.watch(sentence, self.exceeded)

    def name(self, expression: Node | str) -> None:
        """It was this expression, or an attribute of this name."""
        if self.blame is not None:
            self.blame(expression)


BUDGETS: Final = Budgets()


class NotRepresentable(ClassAdError, ValueError):  # noqa: N818 - the same
    """A text form has no way to write this so that it reads back as itself."""
