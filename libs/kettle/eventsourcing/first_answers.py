"""
The answers that commands got first: a repeat gets the same one. What was decided together is stored as one answer to many.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from kettle.eventsourcing.log import Answered

_AS_ONE: Final = "together "
"""How the id of an answer to many commands begins; that of a command begins with an identity, which has no space."""
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(dict[str, bytes]).decode


def as_one(commands: Sequence[str], frame: int, replies: Sequence[bytes]) -> Answered:
    """The answers to many commands, as they are stored."""
    answers = dict(zip(commands, replies, strict=True))
    return Answered(id=f"{_AS_ONE}{commands[0]}", frame=frame, reply=_encode(answers))


def answers_in(stored: Answered) -> Mapping[str, bytes]:
    """What is stored as one answer, by command."""
    return _decode(stored.reply) if stored.id.startswith(_AS_ONE) else {stored.id: stored.reply}


class FirstAnswers:
    """The answers to the newest `keep` commands at least, and which commands are about to get one."""

    def __init__(self, stored: Iterable[Answered], *, keep: int) -> None:
        self._keep = keep
        self._by_command: OrderedDict[str, bytes | None] = OrderedDict()
        self._sizes: deque[int] = deque()
        """To how many commands each stored answer is, oldest first."""
        self._fresh = 0
        """Commands that were answered since old answers were dropped."""
        self.note(stored)
        self._fresh = 0

    def __contains__(self, command: str) -> bool:
        return command in self._by_command

    def find(self, command: str) -> bytes | None:
        """The answer to a command that is known; None: it is not committed yet."""
        return self._by_command[command]

    def expect(self, commands: Iterable[str]) -> None:
        """Commands are decided, and about to get an answer."""
        self._by_command.update(dict.fromkeys(commands))

    def note(self, stored: Iterable[Answered]) -> None:
        """Answers are committed; those of the oldest commands are forgotten."""
        for each in stored:
            answers = answers_in(each)
            self._by_command.update(answers)
            self._sizes.append(len(answers))
            self._fresh += len(answers)
        while len(self._by_command) > self._keep and next(iter(self._by_command.values())) is not None:
            self._by_command.popitem(last=False)

    def enough(self) -> int | None:
        """
        How many of the stored answers are to be kept, once so many commands were answered that it is time to drop old ones.
        """
        if self._fresh <= self._keep:
            return None
        self._fresh, total = 0, sum(self._sizes)
        while len(self._sizes) > 1 and total - self._sizes[0] >= self._keep:
            total -= self._sizes.popleft()
        return len(self._sizes)
