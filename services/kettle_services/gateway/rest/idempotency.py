"""Requests that are repeated with the same Idempotency-Key."""

import hashlib
from collections import OrderedDict
from typing import Final

import msgspec

from kettle.client.connections.transport import new_id
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.refusals import RequestRefused, refused_field
from kettle_wire.rest.problem import ProblemCode

_LONGEST: Final = 256
_LARGEST: Final = 64 << 10
"""Bytes of an answer that is kept; a larger one is made again for a repeat."""
_OF_ONE: Final = 200
"""Requests of one person that are remembered."""


class _Seen(msgspec.Struct):
    request: bytes
    answer: Answer | None = None


class Repeats:
    """
    The answers to the last requests that had a key.

    A submission needs none of this to happen only once: its key becomes the id of the command, whose first answer its access point keeps.
    What is kept here makes a repeat of any request answer alike while this process lives, and tells of a key that is used twice.
    """

    def __init__(self, most: int = 1_000, *, reused: int = 422) -> None:
        """`most`: persons; `reused`: the status of a request with the key of another one."""
        self._reused: Final = reused
        self._most: Final = most
        self._seen: OrderedDict[str, OrderedDict[str, _Seen]] = OrderedDict()

    def first_answer(self, asked: Asked) -> Answer | None:
        """
        What was answered to the first request with this key, if it was; raises RequestRefused if that was another request.
        """
        key = _key(asked)
        if not key:
            return None
        request = _digest(asked)
        own = self._seen.setdefault(asked.person.name, OrderedDict())
        seen = own.setdefault(key, _Seen(request))
        for known, last, most in ((self._seen, asked.person.name, self._most), (own, key, _OF_ONE)):
            known.move_to_end(last)
            while len(known) > most:
                known.popitem(last=False)
        if seen.request != request:
            raise RequestRefused(
                self._reused,
                ProblemCode.KEY_REUSED,
                "another request had this Idempotency-Key: give each request a key of its own, and only its repeats the same",
            )
        return seen.answer

    def answered(self, asked: Asked, answer: Answer) -> Answer:
        """Keep the answer for repeats, unless it is large."""
        own = self._seen.get(asked.person.name)
        seen = own.get(_key(asked)) if own is not None else None
        if seen is not None and len(msgspec.json.encode(answer.reply)) <= _LARGEST:
            seen.answer = answer
        return answer


def command_id(asked: Asked, part: str = "") -> str:
    """The id of a command of the request: the same for its repeats; `part`: which of several commands."""
    key = _key(asked)
    if not key:
        return new_id()
    request = asked.request
    said = f"{asked.person.name}\0{request.method}\0{request.path}\0{key}\0{part}"
    return hashlib.sha256(said.encode()).hexdigest()[:32]


def _key(asked: Asked) -> str:
    key = asked.header("Idempotency-Key")
    if len(key) > _LONGEST or not key.isprintable():
        raise refused_field(
            "/header/Idempotency-Key", f"an Idempotency-Key has {_LONGEST} printable characters at most"
        )
    return key


def _digest(asked: Asked) -> bytes:
    parts = (asked.request.method, asked.request.path_qs, asked.body)
    return hashlib.sha256(msgspec.msgpack.encode(parts)).digest()
