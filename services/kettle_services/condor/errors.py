"""What a command says instead of doing what it was asked."""

from collections.abc import Iterable


class ToolError(Exception):
    """The command ends with `status`; the message goes to standard error as it is."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


class WordsError(ToolError):
    """A mistake in what was typed."""


def nearest(name: str, known: Iterable[str], mark: str = "") -> str:
    """The end of a sentence about an unknown name: the known one that is most like it, behind `mark`."""
    import difflib  # only for who has made a mistake: it takes milliseconds

    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; do you mean {mark}{found[0]}?" if found else ""
