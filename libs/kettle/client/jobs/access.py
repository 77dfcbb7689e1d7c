"""Looking into a job that runs: its files as they grow, and programs beside it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import msgspec

from kettle.bus.ports import Rep, Req
from kettle.client.connections.transport import Requests, new_id
from kettle.client.errors import ClientError, CommandRefusedError
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.access import (
    CLOSE_SESSION,
    EXCHANGE,
    LONGEST_INPUT,
    LONGEST_LOOK,
    OPEN_SESSION,
    PEEK,
    Access,
    CloseSession,
    Exchange,
    Exchanged,
    FilePiece,
    FilePlace,
    OpenSession,
    Output,
    Peek,
    Terminal,
)
from kettle_wire.commands.schedd import AccessGiven
from kettle_wire.endpoint import Endpoint
from kettle_wire.jobs import JobId

STDOUT: Final = "_condor_stdout"
STDERR: Final = "_condor_stderr"
_WAIT_S: Final = 2.0
"""How long an answer waits for output: less than what a question is repeated after."""
_CLOSING_S: Final = 5.0
_LOOK_S: Final = 0.5
"""
Seconds between two checks of files that have not grown, because machines send no notifications about files.
"""


class AttemptAccess:
    """
    The right to look into one attempt of a job; it ends with it, and then everything is refused as `NOT_RUNNING`.
    """

    def __init__(self, requests: Requests, given: AccessGiven) -> None:
        self._requests = requests
        self.startd: Final = given.startd
        self.slot: Final = given.slot
        self.access: Final[Access] = given.access

    @property
    def job(self) -> JobId:
        """Whose files these are."""
        return self.access.job

    def with_access(self, given: AccessGiven) -> "AttemptAccess":
        """Another visit on the same connection: to another attempt of the job."""
        return AttemptAccess(self._requests, given)

    async def peek(self, name: str = STDOUT, *, offset: int = 0, length: int = LONGEST_LOOK) -> FilePiece:
        """
        A piece of a file of the sandbox; a negative `offset` counts from its end.

        Raises:
            CommandRefusedError: `NOT_RUNNING`, or `unreadable` if the file cannot be read.
        """
        request = Peek(access=self.access, files=[FilePlace(name=name, offset=offset, length=length)])
        (piece,) = (await self._ask(PEEK, request)).files
        if piece.trouble:
            raise CommandRefusedError(RefusalCode.UNREADABLE, f"{name}: {piece.trouble}")
        return piece

    async def tail(self, name: str = STDOUT, *, most: int) -> FilePiece:
        """
        The end of a file, at most so many bytes, however many answers that takes.

        Raises CommandRefusedError like `peek`.
        """
        first = await self.peek(name, offset=-most, length=min(most, LONGEST_LOOK))
        found = [first.data]
        have = len(first.data)
        while have < most and found[-1]:
            length = min(most - have, LONGEST_LOOK)
            piece = await self.peek(name, offset=first.offset + have, length=length)
            found.append(piece.data)
            have += len(piece.data)
        return msgspec.structs.replace(first, data=b"".join(found))

    async def follow(self, name: str = STDOUT, *, offset: int = 0) -> AsyncGenerator[FilePiece, None]:
        """
        A file from a place on, as it grows, until the attempt is over. One that was cut short is read from its beginning.
        """
        while True:
            try:
                piece = await self.peek(name, offset=offset)
            except CommandRefusedError as error:
                if error.code == RefusalCode.NOT_RUNNING:
                    return
                raise
            if piece.data:
                yield piece
            else:
                await asyncio.sleep(_LOOK_S)
            offset = piece.offset + len(piece.data) if piece.size >= piece.offset else 0

    @asynccontextmanager
    async def running(
        self, command: Sequence[str], *, terminal: Terminal | None = None
    ) -> AsyncGenerator["SideProgram", None]:
        """
        A program beside the job; it is ended with the context, if it has not ended by itself.

        Raises:
            CommandRefusedError: `refused` if it cannot be started, `NOT_RUNNING`.
        """
        name = new_id()
        try:
            request = OpenSession(access=self.access, session=name, command=list(command), terminal=terminal)
        except ValueError as error:
            raise CommandRefusedError(
                RefusalCode.MALFORMED, f"{error}: put it into a file, or into its input"
            ) from error
        await self._ask(OPEN_SESSION, request)
        try:
            yield SideProgram(self, name)
        finally:
            with suppress(ClientError):  # the machine ends what nobody asks about
                close = CloseSession(access=self.access, session=name)
                await self._requests.ask(CLOSE_SESSION, close, name=self.startd, patience=_CLOSING_S)

    async def exchange(self, request: Exchange) -> Exchanged:
        """For sessions."""
        return await self._ask(EXCHANGE, request)

    async def _ask(self, endpoint: Endpoint[Req, Rep], request: Req) -> Rep:
        return await self._requests.ask(endpoint, request, name=self.startd)


class SideProgram:
    """A program that runs beside a job. Read its `output` to the end: how it ended is known then."""

    def __init__(self, visit: AttemptAccess, name: str) -> None:
        self._visit = visit
        self.name: Final = name
        self._taken = 0
        self._writing = asyncio.Lock()
        self.exit_code: int | None = None
        self.exit_signal: int | None = None

    async def output(self) -> AsyncIterator[Output]:
        """What it writes, in order, until it has ended."""
        number = 0
        while True:
            said = await self._visit.exchange(self._question(after=number, wait=_WAIT_S))
            number = said.number
            for output in said.output:
                yield output
            if said.over:
                self.exit_code, self.exit_signal = said.exit_code, said.exit_signal
                return

    async def write(self, data: bytes, *, ends: bool = False) -> None:
        """Give it input; returns when it has been accepted. `ends`: there is no more."""
        async with self._writing:
            while True:
                piece = data[:LONGEST_INPUT]
                last = ends and len(piece) == len(data)
                question = self._question(at=self._taken, data=piece, ends=last, wait=_WAIT_S)
                said = await self._visit.exchange(question)
                data = data[said.taken - self._taken :]
                self._taken = said.taken
                if not data:
                    return

    async def resize(self, terminal: Terminal) -> None:
        """The person's terminal has another size."""
        async with self._writing:
            await self._visit.exchange(self._question(at=self._taken, terminal=terminal))

    def _question(self, **given: object) -> Exchange:
        request = {"access": self._visit.access, "session": self.name, **given}
        return msgspec.convert(request, Exchange, from_attributes=True)
