"""
How a command fails: one sentence that says what, where, and what to do next.
"""


class CommandError(Exception):
    """
    The command did not do what was asked; exit status 1.
    """


class UsageError(Exception):
    """
    What was typed makes no sense; exit status 2.
    """
