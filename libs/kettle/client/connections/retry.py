"""
Asking a service until it answers: a restart in between is not the asker's business.

Every command carries an id and every query changes nothing, so the same request may be sent again. A service that is
busy says when that is worth while.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from kettle.bus.ports import Asks, BusUnavailableError, NoResponderError, RefusedError, ReplyTimeoutError
from kettle.client.errors import CommandRefusedError, PoolUnreachableError
from kettle_wire.codes import NOT_NOW
from kettle_wire.endpoint import Endpoint

PATIENCE_S: Final = 30.0
"""How long a command is repeated before we give up."""

_TRY_S: Final = 5.0
_FIRST_PAUSE_S: Final = 0.02
_LONGEST_PAUSE_S: Final = 0.5
_NOTED_S: Final = 1.0
"""After so long somebody who waits at a terminal wants to know why."""

Req = TypeVar("Req", bound=msgspec.Struct)
Rep = TypeVar("Rep", bound=msgspec.Struct)


Waiting = Callable[[str], None]
"""Told, once, that an answer takes longer than one notices, and why."""


def pause_for(retry_after_ms: int, usual: float) -> float:
    """
    How long to wait before asking again, seconds: about as long as the service said, else `usual` or somewhat less.

    Never less than it said, and unevenly: a crowd that was refused together must not come back together.
    """
    if retry_after_ms:
        return retry_after_ms / 1000 * random.uniform(1.0, 1.5)  # noqa: S311 - spreads load, guards nothing
    return usual * random.uniform(0.5, 1.0)  # noqa: S311 - as above


async def ask_with_retry(
    asks: Asks,
    endpoint: Endpoint[Req, Rep],
    name: str,
    request: Req,
    *,
    patience: float = PATIENCE_S,
    deadline: float = _TRY_S,
    waiting: Waiting | None = None,
) -> Rep:
    """
    The answer of one service; `patience` in seconds, and `deadline`, after which an answer is believed to be lost.

    Raises:
        CommandRefusedError: the service said no.
        PoolUnreachableError: it did not say anything in time.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    until = began + patience
    usual = _FIRST_PAUSE_S
    while True:
        retry_after_ms = 0
        left = until - loop.time()
        try:
            return await asks.call(endpoint, name, request, deadline=max(0.1, min(deadline, left)))
        except (NoResponderError, ReplyTimeoutError, BusUnavailableError) as error:
            last: Exception = error
        except RefusedError as error:
            if error.code not in NOT_NOW:
                raise CommandRefusedError(error.code, str(error)) from error
            last, retry_after_ms = error, error.retry_after_ms
        pause = pause_for(retry_after_ms, usual)
        now = loop.time()
        if now + pause >= until:
            raise PoolUnreachableError(
                f"the {endpoint.role} '{name}' did not answer within {patience:g} seconds ({last})"
            ) from last
        if waiting is not None and now + pause - began >= _NOTED_S:
            waiting(f"waiting for the {endpoint.role} '{name}': {last}")
            waiting = None
        # Nobody tells that a service is back, so we look again.
        await asyncio.sleep(pause)
        usual = min(usual * 2, _LONGEST_PAUSE_S)
