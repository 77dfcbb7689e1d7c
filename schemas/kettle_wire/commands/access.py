"""
What a person asks of a job that runs, of the machine where it runs: a look at its files, a program beside it.

A shadow asks for the latter, too: for a program on another node of the same job (`kettle_wire.commands.questions.OnNode`).
"""

from typing import Annotated

import msgspec

from kettle_wire.endpoint import Caller, Endpoint, Repeat
from kettle_wire.jobs import JobId

LONGEST_LOOK = 256 * 1024
"""Bytes of all files in one answer, and of a program's output."""
LONGEST_INPUT = 64 * 1024
"""Bytes of a program's input in one message."""
LONGEST_COMMAND = 128 * 1024
"""Bytes of a command's words together."""
LARGEST_QUESTION = 192 * 1024
"""Bytes of any request here."""
LONGEST_WAIT = 5.0
"""Seconds that an answer may be waited for."""

_Text = Annotated[str, msgspec.Meta(max_length=4096, pattern=r"^[^\x00]+$")]
Word = Annotated[str, msgspec.Meta(max_length=65536, pattern=r"^[^\x00]*$")]
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Lines = Annotated[int, msgspec.Meta(ge=1, le=65535)]


class Access(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """
    The right of one person, or of its shadow, to one attempt. A schedd gives it, and the machine checks it; it ends with the attempt.
    """

    claim: str
    job: JobId
    attempt: int
    proof: Annotated[str, msgspec.Meta(max_length=128)]


class FilePlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A place in a file of the sandbox."""

    name: _Text
    """
    Its path in the sandbox; `_condor_stdout` and `_condor_stderr` are the standard streams, wherever they go.
    """
    offset: Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)] = 0
    """Negative: counted from the end, as far as the file goes back."""
    length: Annotated[int, msgspec.Meta(ge=0, le=LONGEST_LOOK)] = LONGEST_LOOK
    """
    All pieces of one answer together have no more than a single one may have; the later ones are shorter then.
    """


class Peek(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Read pieces of files while the job goes on."""

    access: Access
    files: Annotated[list[FilePlace], msgspec.Meta(max_length=16)]


class FilePiece(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of them; with `trouble` it cannot be read, and that is why."""

    name: str
    offset: int = 0
    """Where `data` begins."""
    size: int = 0
    """Of the whole file, now."""
    data: bytes = b""
    trouble: str = ""


class Peeked(msgspec.Struct, frozen=True, kw_only=True):
    """One piece for each place, in order."""

    files: list[FilePiece]


class Terminal(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The terminal that a person sits at."""

    kind: Annotated[str, msgspec.Meta(max_length=64, pattern=r"^[!-~]*$")] = "dumb"
    """TERM."""
    rows: _Lines = 24
    columns: _Lines = 80


class OpenSession(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Run a program beside the job: as its user, in its group, container, directory and environment."""

    access: Access
    session: Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[!-~]+$")]
    """Made by the asker; said again with the same name it starts nothing twice."""
    command: Annotated[list[Word], msgspec.Meta(min_length=1, max_length=1000)]
    terminal: Terminal | None = None
    """None: pipes."""

    def __post_init__(self) -> None:
        """Refuse what no kernel would take as one command."""
        if sum(len(word.encode()) + 1 for word in self.command) > LONGEST_COMMAND:
            raise ValueError(f"the command has more than {LONGEST_COMMAND} bytes")


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """It runs."""

    pid: int


class Exchange(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Give a program input, or ask for its output."""

    access: Access
    session: str
    at: _Count = 0
    """How much input was taken before this; what was taken already is not taken twice."""
    data: Annotated[bytes, msgspec.Meta(max_length=LONGEST_INPUT)] = b""
    ends: bool = False
    """There is no more input after this."""
    terminal: Terminal | None = None
    """Its size now."""
    after: _Count | None = None
    """The number of the last piece of output that has come, 0 before the first; None asks for none."""
    wait: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WAIT)] = 0.0
    """Seconds that the answer may wait for output."""


class Output(msgspec.Struct, frozen=True, array_like=True):
    """What a program wrote on a descriptor: 1 or 2."""

    descriptor: int
    data: bytes


class Exchanged(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How much input was taken altogether, and the next piece of output, if there is one."""

    taken: int = 0
    number: int = 0
    """Of the last piece that was made; the one after `after` is here."""
    output: list[Output] = []
    over: bool = False
    """The program has ended, and this was all that it wrote."""
    exit_code: int | None = None
    exit_signal: int | None = None


class CloseSession(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """End the program, if it has not ended, and forget it."""

    access: Access
    session: str


class Closed(msgspec.Struct, frozen=True):
    """There is no such session (any more)."""


PEEK = Endpoint(
    "startd",
    "peek",
    Peek,
    Peeked,
    callers=(Caller.USER,),
    repeat=Repeat.QUERY,
    limited=True,
    largest=LARGEST_QUESTION,
)
OPEN_SESSION = Endpoint(
    "startd",
    "open_session",
    OpenSession,
    Opened,
    callers=(Caller.USER, Caller.SHADOW),
    repeat=Repeat.HARMLESS,
    limited=True,
    largest=LARGEST_QUESTION,
)
EXCHANGE = Endpoint(
    "startd",
    "exchange",
    Exchange,
    Exchanged,
    callers=(Caller.USER, Caller.SHADOW),
    repeat=Repeat.HARMLESS,
    limited=True,
    largest=LARGEST_QUESTION,
)
CLOSE_SESSION = Endpoint(
    "startd",
    "close_session",
    CloseSession,
    Closed,
    callers=(Caller.USER, Caller.SHADOW),
    repeat=Repeat.HARMLESS,
    limited=True,
    largest=LARGEST_QUESTION,
)
