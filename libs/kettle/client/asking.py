"""
Asking a service until it answers: a restart in between is not the asker's business.

Every command carries an id and every query changes nothing, so the same request may be sent again.
"""

import asyncio
import random
from typing import Final, TypeVar

import msgspec

from kettle.bus.ports import Bus, BusUnavailableError, NoResponderError, RefusedError, ReplyTimeoutError
from kettle.client.errors import CommandRefusedError, PoolUnreachableError
from kettle.wire.endpoint import Endpoint

PATIENCE_S: Final = 30.0
"""How long a command is repeated before we give up."""

_TRY_S: Final = 5.0
_FIRST_PAUSE_S: Final = 0.02
_LONGEST_PAUSE_S: Final = 0.5
_NOT_NOW: Final = frozenset({"busy", "draining", "unavailable"})

Req = TypeVar("Req", bound=msgspec.Struct)
Rep = TypeVar("Rep", bound=msgspec.Struct)


async def ask(
    bus: Bus, endpoint: Endpoint[Req, Rep], name: str, request: Req, *, patience: float = PATIENCE_S
) -> Rep:
    """
    The answer of one service; `patience` in seconds.

    Raises:
        CommandRefusedError: the service said no.
        PoolUnreachableError: it did not say anything in time.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + patience
    pause = _FIRST_PAUSE_S
    while True:
        left = until - loop.time()
        try:
            return await bus.call(endpoint, name, request, deadline=max(0.1, min(_TRY_S, left)))
        except (NoResponderError, ReplyTimeoutError, BusUnavailableError) as error:
            last: Exception = error
        except RefusedError as error:
            if error.code not in _NOT_NOW:
                raise CommandRefusedError(error.code, str(error)) from error
            last = error
        if loop.time() + pause >= until:
            raise PoolUnreachableError(
                f"the {endpoint.role} '{name}' did not answer within {patience:g} seconds ({last})"
            ) from last
        # Nobody tells that a service is back, so we look again, at uneven intervals: a crowd of askers spreads out.
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
        pause = min(pause * 2, _LONGEST_PAUSE_S)
