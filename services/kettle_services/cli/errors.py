"""How a command fails: one sentence that says what, where, and what to do next."""


class CommandError(Exception):
    """The command did not do what was asked; exit status 1."""


class UsageError(Exception):
    """What was typed makes no sense, or names what cannot be read; exit status 2."""


class OutputError(Exception):
    """The output could not be written; exit status 2, for any output."""
