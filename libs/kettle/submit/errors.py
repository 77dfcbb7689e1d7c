"""
What can be wrong with a submit description.

    SubmitError           it is refused: where, and one sentence
    └── NoJobError        it is sound and makes no job: its lists are empty
    PlacelessError        the same, raised where the place is not known; becomes a SubmitError
    └── MacroError        a macro has no value
"""


class SubmitError(Exception):
    """
    The description is refused; nothing has been sent to anybody.

    `line` counts from 1; None means that the trouble is not in one line (the command line, a file as a whole).
    """

    def __init__(self, sentence: str, *, source: str, line: int | None = None) -> None:
        where = source if line is None else f"{source}, line {line}"
        super().__init__(f"{where}: {sentence}")
        self.sentence = sentence
        self.source = source
        self.line = line


class NoJobError(SubmitError):
    """All queue statements are empty; condor_submit says so and is content."""


class PlacelessError(ValueError):
    """A part of a description is wrong; the message is the sentence, and the caller knows the line."""


class MacroError(PlacelessError):
    """A macro or a function macro has no value."""
