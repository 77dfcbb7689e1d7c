"""What is asked of the submit side, by way of the startd: numbered, so that an answer finds who asked."""

from collections.abc import Callable

from kettle.execution.attempts.messages import Question
from kettle_wire.commands import questions


class SubmitSideQuestions:
    """The requests of one attempt."""

    def __init__(self, shadow: str, say: Callable[[Question], object]) -> None:
        self._shadow = shadow
        self._say = say
        self._number = 0

    def ask(self, asks: questions.Question) -> int:
        """Ask; the number that the answer will have."""
        self._number += 1
        self.again(self._number, asks)
        return self._number

    def again(self, number: int, asks: questions.Question) -> None:
        """Send the request with this number again: the startd that received it may have ended."""
        self._say(Question(number, self._shadow, asks))
