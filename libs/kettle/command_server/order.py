"""What a caller sends: `kettle.command_server.asking` writes it, without any module, and this reads it."""

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self


class MalformedOrderError(Exception):
    """These bytes are no order."""


class Order(NamedTuple):
    """
    A command to be carried out.

    Three numbers and texts lead, then come the words and the variables, all separated by zero bytes, which none of them can have.
    """

    context: bytes
    """Of the caller, see `asking.context`."""
    umask: int
    words: Sequence[str]
    environ: Mapping[bytes, bytes]

    @classmethod
    def read(cls, data: bytes) -> Self:
        """
        From one packet.

        Raises MalformedOrderError.
        """
        try:
            context, mask, count, *rest = data.split(b"\0")
            umask, words = int(mask, 8), int(count)
            environ: dict[bytes, bytes] = {}
            for variable in rest[words:]:
                name, value = variable.split(b"=", 1)
                environ.setdefault(name, value)  # of two of one name the first counts, as in every program
        except ValueError as error:
            raise MalformedOrderError from error
        if not (0 <= umask <= 0o777 and 1 <= words <= len(rest)):
            raise MalformedOrderError
        return cls(context, umask, [os.fsdecode(word) for word in rest[:words]], environ)

    def written(self) -> bytes:
        """As a packet."""
        variables = [b"%s=%s" % item for item in self.environ.items()]
        words = [os.fsencode(word) for word in self.words]
        return b"\0".join((self.context, b"%o" % self.umask, b"%d" % len(words), *words, *variables))
