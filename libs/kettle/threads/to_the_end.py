"""Work in a thread that is over when its caller goes on, however that ends."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def to_the_end(work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """
    The result of `work`, done in a thread; who is cancelled meanwhile ends when the work has, with its failure if it has failed.

    `asyncio.to_thread` leaves its thread behind then: it would go on in files of which somebody else has the lock by now, and with
    descriptors that are closed, whose numbers may be those of other files.
    """
    context = copy_context()
    # No task: the end of a loop cancels all of these, and the thread would go on.
    working = asyncio.get_running_loop().run_in_executor(None, lambda: context.run(work, *arguments, **named))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        while not working.done():
            with suppress(asyncio.CancelledError):  # once more: it is told below
                await asyncio.wait([working])
        working.result()
        raise
