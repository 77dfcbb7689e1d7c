"""What a command says instead of doing what it was asked."""


class ToolError(Exception):
    """The command ends with `status`; the message goes to standard error as it is."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


class WordsError(ToolError):
    """A mistake in what was typed."""
