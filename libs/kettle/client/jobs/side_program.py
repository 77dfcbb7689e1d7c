"""A program beside a job, with our streams, or our terminal, as its own."""

import asyncio
import os
import select
import shutil
import signal
import sys
import termios
import tty as terminals
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import AsyncExitStack, aclosing, contextmanager, suppress
from typing import Final

from kettle.client.errors import CommandRefusedError, NotBegunError
from kettle.client.jobs.access import AttemptAccess, SideProgram
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.access import Terminal

_READ_BYTES: Final = 64 * 1024
_STDIN: Final = 0
_SIGNALLED: Final = 128
"""What a shell adds to the number of the signal that ended a program."""

SHELL: Final = "if command -v bash > /dev/null 2>&1; then exec bash; else exec sh; fi"
"""What a shell is given that is to be for a person."""

Write = Callable[[int, bytes], None]
"""Takes what the program wrote: to standard output (1) or standard error (2)."""


async def run_beside(
    visit: AttemptAccess, command: Sequence[str], write: Write, *, tty: bool, listens: bool
) -> int:
    """
    Run it to its end; its exit status, as a shell has it.

    Raises:
        NotBegunError: the program of the job does not run yet, or not any more.
        CommandRefusedError: it cannot be started, or the run of the job is over meanwhile.
    """
    terminal = _terminal() if tty else None
    try:
        async with AsyncExitStack() as stack:
            session = await _begun(stack, visit, command, terminal)
            if tty and listens and sys.stdin.isatty():
                stack.enter_context(_raw())
                _follow_size(session, stack)
            feeding = asyncio.create_task(_feed(session, listens=listens))
            stack.callback(feeding.cancel)
            async for output in session.output():
                write(output.descriptor, output.data)
    except CommandRefusedError as error:
        if isinstance(error, NotBegunError) or error.code != RefusalCode.NOT_RUNNING:
            raise
        raise CommandRefusedError(
            error.code, f"this run of job {visit.job} is over, and everything beside it"
        ) from error
    if session.exit_signal is not None:
        return _SIGNALLED + session.exit_signal
    return session.exit_code or 0


async def _begun(
    stack: AsyncExitStack, visit: AttemptAccess, command: Sequence[str], terminal: Terminal | None
) -> SideProgram:
    try:
        return await stack.enter_async_context(visit.running(command, terminal=terminal))
    except CommandRefusedError as error:
        if error.code in {RefusalCode.NOT_RUNNING, RefusalCode.NOT_READY}:
            raise NotBegunError(error.code, str(error)) from error
        raise


async def _feed(session: SideProgram, *, listens: bool) -> None:
    """Pass on our input until it ends, or the program does."""
    with suppress(CommandRefusedError):  # the reader of its output gets the error
        if listens:
            async with aclosing(standard_input()) as pieces:
                async for data in pieces:
                    await session.write(data)
        await session.write(b"", ends=True)


async def standard_input() -> AsyncGenerator[bytes, None]:
    """Our standard input, piece by piece."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    try:
        loop.add_reader(_STDIN, readable.set)
    except PermissionError:  # a file on disk: it never makes us wait
        readable.set()
        while data := os.read(_STDIN, _READ_BYTES):
            yield data
        return
    try:
        while True:
            await readable.wait()
            readable.clear()
            if not select.select([_STDIN], [], [], 0)[0]:
                continue  # that was about what has been read meanwhile
            data = os.read(_STDIN, _READ_BYTES)
            if not data:
                return
            yield data
    finally:
        loop.remove_reader(_STDIN)


def _terminal() -> Terminal:
    size = shutil.get_terminal_size()
    return Terminal(
        kind=os.environ.get("TERM", "dumb")[:64], rows=max(1, size.lines), columns=max(1, size.columns)
    )


@contextmanager
def _raw() -> Generator[None]:
    """Every key goes to the program, as it is typed."""
    before = termios.tcgetattr(_STDIN)
    terminals.setraw(_STDIN, termios.TCSADRAIN)  # what was typed already is meant for it, too
    try:
        yield
    finally:
        termios.tcsetattr(_STDIN, termios.TCSADRAIN, before)


def _follow_size(session: SideProgram, stack: AsyncExitStack) -> None:
    """Pass changes of our terminal's size on to the program."""
    loop, telling = asyncio.get_running_loop(), set[asyncio.Task[None]]()

    def changed() -> None:
        task = loop.create_task(_resize(session))
        telling.add(task)
        task.add_done_callback(telling.discard)

    loop.add_signal_handler(signal.SIGWINCH, changed)
    stack.callback(loop.remove_signal_handler, signal.SIGWINCH)


async def _resize(session: SideProgram) -> None:
    with suppress(CommandRefusedError):
        await session.resize(_terminal())
