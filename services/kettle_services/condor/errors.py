"""What a command says instead of doing what it was asked."""

from collections.abc import Iterable

from kettle.terminal.nearest_names import nearest


class ToolError(Exception):
    """The command ends with `status`; the message goes to standard error as it is."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


class WordsError(ToolError):
    """A mistake in what was typed."""


def do_you_mean(name: str, known: Iterable[str], mark: str = "") -> str:
    """The end of a sentence about an unknown name: the known one that is most like it, behind `mark`."""
    found = nearest(name, known)
    return f"; do you mean {mark}{found}?" if found else ""
