r"""
The part of the conversation with `kettle_rsh`: a command on another node of the job, its output, and how it ended.

What follows the number 0 are lines that a shell can read: `out TEXT` and `err TEXT`, in which every byte that is not plain
stands as `\0NNN`, and at the end `exit STATUS`, or `refused REASON`.
"""

import os
import re
from collections.abc import Callable, Generator
from typing import Any, Final

import msgspec

from kettle_services.starter.chirp.syntax import NoSuchRequestError
from kettle_services.starter.chirp.waits import AskSubmitSide, Pause, Talk, Wait, WaitForRoom
from kettle_wire.codes import NOT_NOW, RefusalCode
from kettle_wire.commands.access import EXCHANGE, Output
from kettle_wire.commands.chirp import Chirped, Trouble
from kettle_wire.commands.questions import Commanded, OnNode

LONGEST_COMMAND: Final = 65536
"""Bytes; it is one word."""
_PIECE: Final = 2048
"""Bytes of output in one line."""
_AGAIN_S: Final = 0.5
_SIGNALLED: Final = 128
"""What a shell adds to the number of the signal that ended a program."""
_UNPLAIN: Final = re.compile(rb"[^0-9A-Za-z_.,:;/+=@#()\[\]-]")
_PASSING: Final = NOT_NOW | {RefusalCode.NOT_READY}
_NOT_BEGUN: Final = _PASSING | {RefusalCode.NOT_RUNNING}
"""What a node answers that has not begun yet: all begin at about the same time."""
_STREAMS: Final = {1: b"out", 2: b"err"}


def run(node: int, command: bytes, say: Callable[[bytes], object], sessions: set[tuple[int, str]]) -> Talk:
    """
    All of it; as long as it has not ended it is in `sessions`.

    Raises:
        msgspec.ValidationError: what is asked makes no sense.
        NoSuchRequestError: the command is no text.
    """
    opening = _opening(node, command)
    session = opening.session
    sessions.add((node, session))
    say(b"0\n")
    said = yield from _asked(opening, _NOT_BEGUN)
    number = 0
    while not said.code:
        said = yield from _asked(OnNode(node=node, session=session, verb="exchange", after=number), _PASSING)
        if said.code:
            break
        found = EXCHANGE.decode_reply(said.body)
        number = found.number
        for output in found.output:
            say(_lines(output))
        yield WaitForRoom()
        if found.over:
            status = found.exit_code if found.exit_signal is None else _SIGNALLED + found.exit_signal
            say(f"exit {status or 0}\n".encode())
            break
    if said.code:
        say(b"refused " + _plain(said.reason.encode()) + b"\n")
    sessions.discard((node, session))


def _opening(node: int, command: bytes) -> OnNode:
    try:
        words = ["/bin/sh", "-c", command.decode()]
    except UnicodeDecodeError as error:
        raise NoSuchRequestError from error
    asked = {
        "type": "on_node",
        "node": node,
        "session": os.urandom(8).hex(),
        "verb": "open_session",
        "command": words,
    }
    return msgspec.convert(asked, OnNode)


def _asked(question: OnNode, passing: frozenset[str]) -> Generator[Wait, Any, Commanded]:
    """The answer, when the other side can give one."""
    while True:
        answer: Chirped = yield AskSubmitSide(question)
        if answer.result >= 0:
            said = msgspec.msgpack.decode(answer.data, type=Commanded)
            if said.code not in passing:
                return said
        elif answer.result not in {Trouble.OFFLINE, Trouble.TRY_AGAIN}:
            return Commanded(code=RefusalCode.REFUSED, reason="the access point does not carry it out")
        yield Pause(_AGAIN_S)


def _lines(output: Output) -> bytes:
    data, stream = output.data, _STREAMS[output.descriptor]
    pieces = (data[at : at + _PIECE] for at in range(0, len(data), _PIECE))
    return b"".join(stream + b" " + _plain(piece) + b"\n" for piece in pieces)


def _plain(data: bytes) -> bytes:
    return _UNPLAIN.sub(lambda found: b"\\0%03o" % found[0][0], data)
