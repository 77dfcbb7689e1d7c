"""
What the bindings raise, under HTCondor's names.

Version 1 distinguished errors by classes that are also Python's own; those of version 2 are their base classes, so that
code can catch either.
"""

from contextvars import ContextVar

_last_error: ContextVar[str] = ContextVar("last_error", default="")


class ClassAdException(Exception):
    """A ClassAd or an expression is not what it should be."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        _last_error.set(message)


def lastError() -> str:
    """What the last error of this thread was; empty if there was none."""
    return _last_error.get()


class ClassAdParseError(ClassAdException, ValueError, SyntaxError):
    """A text is no ClassAd, or no expression (version 1)."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.msg = message  # what a SyntaxError shows


class ClassAdEvaluationError(ClassAdException, TypeError, RuntimeError):
    """An expression has no value, or one that Python cannot use here (version 1)."""


class ClassAdValueError(ClassAdException, ValueError):
    """A value cannot stand in a ClassAd (version 1)."""


class HTCondorException(Exception):
    """Base of what the bindings raise."""


class HTCondorIOError(HTCondorException, IOError, RuntimeError):
    """The pool does not answer, or refuses."""


class HTCondorLocateError(HTCondorException, ValueError, RuntimeError):
    """There is no such daemon, or no pool."""


class HTCondorReplyError(HTCondorException, RuntimeError):
    """The pool understood, and refused."""


class HTCondorValueError(HTCondorException, ValueError):
    """An argument cannot be used."""


class HTCondorTypeError(HTCondorException, TypeError):
    """An argument is of a wrong type."""


class HTCondorEnumError(HTCondorException, NotImplementedError):
    """An enumeration has no such member."""


class HTCondorInternalError(HTCondorException, RuntimeError):
    """Something that should not happen did."""


class NotCarriedOutError(HTCondorException, NotImplementedError):
    """Kettle has nothing that this call could do; the message says what to use instead."""
