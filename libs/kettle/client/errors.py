"""
What can go wrong between a person's program and the pool; each message is a sentence for that person.

    ClientError
    ├── PoolNotFoundError      the pool's address is not known, or cannot be used
    ├── PoolUnreachableError   the pool, or the service that was asked, did not answer in time
    └── CommandRefusedError    a service refused; `code` is stable

A submit description that is refused is `kettle.submit.SubmitError`.
"""


class ClientError(Exception):
    """Base of what this library raises."""


class PoolNotFoundError(ClientError):
    """No pool is known here."""


class PoolUnreachableError(ClientError):
    """
    Nobody answered until the deadline.

    A command that changes something may have been carried out: repeating it by hand may do it twice.
    """


class CommandRefusedError(ClientError):
    """The pool understood, and refused."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class NotBegunError(CommandRefusedError):
    """Nothing was started beside a job, whose run has not begun, or is over."""
