"""
One conversation in the chirp protocol, as a generator: it yields what it waits for, and is sent what came.

No I/O. What only the submit side can do is a wish to it; attributes that are set without hurry stay with us.
"""

import hmac
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.execution.attempts.job_spec import ChirpPolicy
from kettle.execution.job_environment.job_ad import JobAd, old_form
from kettle_services.starter.chirp.syntax import NoSuchRequestError, integer, natural, words
from kettle_services.starter.chirp.waits import (
    AskSubmitSide,
    HangUpError,
    ReadBytes,
    ReadLine,
    Talk,
    WaitForRoom,
)
from kettle_wire.commands import questions
from kettle_wire.commands.chirp import (
    PIECE,
    Chirped,
    CloseFile,
    GetAttribute,
    Note,
    OnFile,
    OnPath,
    OpenFile,
    ReadFile,
    SeekFile,
    SetAttribute,
    Trouble,
    WriteFile,
)
from kettle_wire.commands.questions import Command

if TYPE_CHECKING:
    from kettle_services.starter.chirp.publishing import Publishing

LONGEST_VALUE: Final = 993
"""Bytes of a value that is set without hurry, as in HTCondor."""
MOST_DELAYED: Final = 100
"""Attributes that are set so (CHIRP_DELAYED_UPDATE_MAX_ATTRS)."""
VERSION: Final = 2
_IDENTITY: Final = b"CONDOR"
"""Who anybody is here, as HTCondor says it: a job has one owner, and nobody is asked for his name."""


_ON_PATH: Final[Mapping[str, tuple[int, int]]] = {
    "unlink": (1, 0), "rename": (2, 0), "mkdir": (1, 1), "rmdir": (1, 0), "rmall": (1, 0), "link": (2, 0),
    "symlink": (2, 0), "access": (1, 1), "chmod": (1, 1), "chown": (1, 2), "lchown": (1, 2), "truncate": (1, 1),
    "utime": (1, 2), "stat": (1, 0), "lstat": (1, 0), "statfs": (1, 0), "getdir": (1, 0), "getlongdir": (1, 0),
    "readlink": (1, 1),
}  # fmt: skip
"""Requests about paths: how many paths, how many numbers."""
_ON_FILE: Final[Mapping[str, int]] = {
    "fsync": 0, "fstat": 0, "fstatfs": 0, "fchmod": 1, "fchown": 2, "ftruncate": 1,
}  # fmt: skip
"""Requests about open files: how many numbers beside the file's own."""


class Delayed:
    """
    What the programs of a job have set without hurry; others than `prefixes` name, with `*`, are refused.
    """

    def __init__(self, job: JobAd, prefixes: tuple[str, ...]) -> None:
        self._job = job
        self._prefixes = [prefix.lower() for prefix in prefixes]
        self.told: dict[str, str] = {}
        """Texts of expressions by name, as first spelled."""

    def set(self, name: str, expression: str) -> Trouble | None:
        """Why it cannot be set; None if it is."""
        from kettle.classad import ClassAdError, parse  # rarely needed, and each page costs memory

        if not any(fnmatchcase(name.lower(), prefix) for prefix in self._prefixes):
            return Trouble.NOT_AUTHORIZED
        if len(expression.encode()) > LONGEST_VALUE:
            return Trouble.TOO_BIG
        try:
            parse(expression)
        except ClassAdError:
            return Trouble.INVALID_REQUEST
        known = self._known(name)
        if known is None and len(self.told) >= MOST_DELAYED:
            return Trouble.TRY_AGAIN
        self.told[known or name] = expression
        return None

    def get(self, name: str) -> str | None:
        """The value that was set last, or else the value in the job's ad when the job began."""
        known = self._known(name)
        if known is not None:
            return self.told[known]
        value = self._job.value(name)
        return None if value is None else old_form(value)

    def _known(self, name: str) -> str | None:
        return next((each for each in self.told if each.lower() == name.lower()), None)


class Dialogue:
    """The talk on one connection: `say` sends, `open_files` are to be closed when it ends."""

    def __init__(
        self,
        cookie: str,
        policy: ChirpPolicy,
        delayed: Delayed,
        say: Callable[[bytes], object],
        publishing: "Publishing | None" = None,
    ) -> None:
        self._publishing = publishing
        self._cookie = cookie
        self._policy = policy
        self._delayed = delayed
        self._say = say
        self.open_files: set[int] = set()
        self.sessions: set[tuple[int, str]] = set()
        """Programs on other nodes that have not ended, each with its node."""
        self.trusted = False
        """Whether the cookie was right."""

    def talk(self) -> Talk:
        """
        The whole conversation; it ends when no more requests come.

        Raises:
            HangUpError: it cannot continue.
        """
        while (line := (yield ReadLine())) is not None:
            said = words(line) if "\ufffd" not in line else []  # it was no text
            if not self.trusted:
                self.trusted = len(said) == 2 and said[0] == "cookie" and self._is_right(said[1])
                self._number(0 if self.trusted else Trouble.NOT_AUTHENTICATED)
                if not self.trusted:
                    return
                continue
            try:
                yield from self._carry_out(said)
            except (NoSuchRequestError, msgspec.ValidationError):
                self._number(Trouble.INVALID_REQUEST)
        self._number(Trouble.TOO_BIG)

    def _is_right(self, cookie: str) -> bool:
        return hmac.compare_digest(cookie.encode(), self._cookie.encode())

    def _carry_out(self, said: list[str]) -> Talk:
        match said:
            case ["set_job_attr_delayed" | "get_job_attr_delayed", *_] if self._policy.delayed:
                self._without_hurry(said)
            case ["get_job_attr" | "set_job_attr" | "ulog", *_] if self._policy.updates:
                yield from self._on_job(said)
            case ["version", *_] if self._policy.updates:
                self._number(VERSION)
            case ["whoami", _] | ["whoareyou", _, _] if self._policy.files:
                self._data(Chirped(len(_IDENTITY), _IDENTITY))
            case ["kettle", role, name, verb, length] if self._may_ask(role):
                yield from self._on_pool(role, name, verb, natural(length))
            case ["kettle_node", node, length] if self._policy.nodes:
                yield from self._on_node(natural(node), natural(length))
            case ["publish" | "unpublish" as verb, text] if self._policy.services:
                yield from self._on_services(verb, text)
            case [verb, *rest] if self._policy.files:
                yield from self._on_files(verb, rest)
            case _:
                raise NoSuchRequestError

    # -- the job's ad and its log ------------------------------------------------------------------------------------

    def _without_hurry(self, said: list[str]) -> None:
        match said:
            case ["set_job_attr_delayed", name, expression]:
                self._number(self._delayed.set(name, expression) or 0)
            case ["get_job_attr_delayed", name]:
                found = self._delayed.get(name)
                self._data(Chirped(Trouble.DOESNT_EXIST) if found is None else _text(found))
            case _:
                raise NoSuchRequestError

    def _on_job(self, said: list[str]) -> Talk:
        match said:
            case ["get_job_attr", name]:
                self._data((yield AskSubmitSide(GetAttribute(name))))
            case ["set_job_attr", name, expression]:
                self._answer((yield AskSubmitSide(SetAttribute(name, expression))))
            case ["ulog", text]:
                self._answer((yield AskSubmitSide(Note(text))))
            case _:
                raise NoSuchRequestError

    # -- the queue ---------------------------------------------------------------------------------------------------

    def _may_ask(self, role: str) -> bool:
        return self._policy.commands or (self._policy.sessions and role == "sessions")

    def _on_pool(self, role: str, name: str, verb: str, length: int) -> Talk:
        """A request of Kettle's own beside the protocol: see `kettle.bus.job_connection`."""
        if length > questions.COMMAND:
            raise HangUpError  # its data is on the way, and cannot be accepted
        body: bytes = yield ReadBytes(length)
        said = {"type": "command", "role": role, "name": name, "verb": verb, "body": body}
        self._data((yield AskSubmitSide(msgspec.convert(said, Command))))
        yield WaitForRoom()

    # -- other nodes -------------------------------------------------------------------------------------------------

    def _on_node(self, node: int, length: int) -> Talk:
        """A request of Kettle's own, for `kettle_rsh`."""
        from kettle_services.starter.chirp.other_nodes import LONGEST_COMMAND, run  # rarely needed, as above

        if length > LONGEST_COMMAND:
            raise HangUpError  # as above
        command: bytes = yield ReadBytes(length)
        yield from run(node, command, self._say, self.sessions)

    # -- published services ------------------------------------------------------------------------------------------

    def _on_services(self, verb: str, text: str) -> Talk:
        from kettle_services.starter.chirp.publishing import publish, unpublish  # rarely needed, as above

        assert self._publishing is not None, "who may publish has where to"
        if verb == "publish":
            yield from publish(text, self._publishing, self._say)
        else:
            self._number(unpublish(text, self._publishing) or 0)

    # -- files -------------------------------------------------------------------------------------------------------

    def _on_files(self, verb: str, rest: list[str]) -> Talk:
        if verb in _ON_PATH:
            paths, numbers = _ON_PATH[verb]
            if len(rest) != paths + numbers:
                raise NoSuchRequestError
            on_path = OnPath(verb, rest[:paths], [integer(word) for word in rest[paths:]])
            yield from self._told_of(verb, (yield AskSubmitSide(on_path)))
        elif verb in _ON_FILE:
            if len(rest) != 1 + _ON_FILE[verb]:
                raise NoSuchRequestError
            on_file = OnFile(verb, natural(rest[0]), [integer(word) for word in rest[1:]])
            yield from self._told_of(verb, (yield AskSubmitSide(on_file)))
        else:
            yield from self._on_contents(verb, rest)

    def _told_of(self, verb: str, answer: Chirped) -> Talk:
        if verb.endswith(("stat", "statfs")):
            self._number(answer.result)
            self._say(answer.data)
        elif verb in {"getdir", "getlongdir", "readlink"}:
            self._data(answer)
        else:
            self._answer(answer)
        yield WaitForRoom()

    def _on_contents(self, verb: str, rest: list[str]) -> Talk:
        match verb, rest:
            case "open", [path, flags, mode]:
                yield from self._open(path, flags, natural(mode))
            case "close", [fd]:
                self.open_files.discard(natural(fd))
                self._answer((yield AskSubmitSide(CloseFile(natural(fd)))))
            case "lseek", [fd, offset, whence]:
                self._answer((yield AskSubmitSide(SeekFile(natural(fd), integer(offset), _whence(whence)))))
            case "getfile", [path]:
                yield from self._getfile(path)
            case "putfile", [path, mode, length]:
                yield from self._putfile(path, natural(mode), natural(length))
            case (("read" | "pread" | "sread"), [fd, length, *where]) if len(where) == _WHERE[verb]:
                yield from self._read(natural(fd), natural(length), [natural(word) for word in where])
            case (("write" | "pwrite" | "swrite"), [fd, length, *where]) if len(where) == _WHERE[verb]:
                yield from self._write(natural(fd), natural(length), [natural(word) for word in where])
            case _:
                raise NoSuchRequestError

    def _open(self, path: str, flags: str, mode: int) -> Talk:
        answer: Chirped = yield AskSubmitSide(OpenFile(path, flags, mode & 0o777))
        self._number(answer.result)
        if answer.result >= 0:
            self.open_files.add(answer.result)
            self._say(answer.data)

    def _read(self, fd: int, length: int, where: list[int]) -> Talk:
        """No more than a piece: a reader asks again for what it did not get."""
        self._data((yield AskSubmitSide(ReadFile(fd, min(length, PIECE), *_place(where)))))
        yield WaitForRoom()

    def _write(self, fd: int, length: int, where: list[int]) -> Talk:
        """
        All that is announced has to be read, in pieces; what counts is how much of it was written before one failed.
        """
        offset, stride = _place(where)
        written, trouble = 0, 0
        if stride is not None and length > PIECE:
            raise NoSuchRequestError  # where its parts go is known only when it is complete
        while length > 0:
            data: bytes = yield ReadBytes(min(length, PIECE))
            length -= len(data)
            if trouble:
                continue
            at = None if offset is None else offset + written
            answer: Chirped = yield AskSubmitSide(WriteFile(fd, data, at, stride))
            written += max(0, answer.result)
            trouble = answer.result if answer.result < 0 else int(answer.result < len(data))
        self._number(trouble if trouble < 0 and not written else written)

    def _getfile(self, path: str) -> Talk:
        answer: Chirped = yield AskSubmitSide(OpenFile(path, "r"))
        if answer.result < 0:
            self._number(answer.result)
            return
        fd, size = answer.result, int(answer.data.split()[_SIZE])
        self.open_files.add(fd)
        self._number(size)
        while size > 0:
            piece: Chirped = yield AskSubmitSide(ReadFile(fd, min(size, PIECE)))
            if piece.result <= 0:
                raise HangUpError  # it was to be longer: only the end of the connection can say that it is not
            self._say(piece.data)
            size -= len(piece.data)
            yield WaitForRoom()
        self.open_files.discard(fd)
        yield AskSubmitSide(CloseFile(fd))

    def _putfile(self, path: str, mode: int, length: int) -> Talk:
        answer: Chirped = yield AskSubmitSide(OpenFile(path, "wct", mode & 0o777))
        self._number(answer.result)
        if answer.result < 0:
            return
        self.open_files.add(answer.result)
        yield from self._write(answer.result, length, [])
        self.open_files.discard(answer.result)
        yield AskSubmitSide(CloseFile(answer.result))

    # -- answers -----------------------------------------------------------------------------------------------------

    def _number(self, number: int) -> None:
        self._say(b"%d\n" % number)

    def _answer(self, answer: Chirped) -> None:
        self._number(answer.result)

    def _data(self, answer: Chirped) -> None:
        self._number(answer.result if answer.result < 0 else len(answer.data))
        self._say(answer.data)


_WHERE: Final = {"read": 0, "write": 0, "pread": 1, "pwrite": 1, "sread": 3, "swrite": 3}
"""How many numbers say where."""
_FARTHEST: Final = 2**62
_SIZE: Final = 7
"""Which number of `stat` it is."""


def _place(where: list[int]) -> tuple[int | None, tuple[int, int] | None]:
    match where:
        case [offset, *_] if offset > _FARTHEST:
            raise NoSuchRequestError
        case [offset, length, skip]:
            return offset, (length, skip)
        case [offset]:
            return offset, None
        case _:
            return None, None


def _whence(word: str) -> int:
    whence = natural(word)
    if whence > 2:
        raise NoSuchRequestError
    return whence


def _text(text: str) -> Chirped:
    data = text.encode()
    return Chirped(len(data), data)
