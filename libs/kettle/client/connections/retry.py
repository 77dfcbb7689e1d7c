"""
Asking a service until it answers: a restart in between is not the asker's business.

Every command carries an id and every query changes nothing, so the same request may be sent again. A service that is
busy says when that is worth while.
"""

from typing import Any, Final, TypeVar

import msgspec

from kettle.bus.ports import Asks, NoResponderError, RefusedError
from kettle.bus.retryable import UNHEARD, retry_after, retryable
from kettle.client.connections.transport import PATIENCE_S, TRY_S, Waiting
from kettle.client.errors import CommandRefusedError, PoolUnreachableError
from kettle.retry.backoff import Backoff
from kettle.retry.deadline import Deadline
from kettle.retry.loop import retry
from kettle_wire.codes import NOT_NOW, RefusalCode
from kettle_wire.endpoint import Caller, Endpoint

_BACKOFF: Final = Backoff(first=0.02, longest=0.5)
"""Nobody tells that a service is back, so we look again."""
_NOTED_S: Final = 1.0
"""After so long somebody who waits at a terminal wants to know why."""
_NO_IAM_S: Final = 2.0
"""A pool need not have an iam: after so long without one it is not waited for."""
_NO_IAM: Final = "nobody answers for the iam of this pool: if it has none, put iam into daemon_list of [master] in kettle.toml, then kettle restart"
_QUEUES: Final = "; where queues are on access points, name the one that you mean: --name NAME"
"""For who came by token: accounts of an access point have its name in the pool's file."""

Req = TypeVar("Req", bound=msgspec.Struct)
Rep = TypeVar("Rep", bound=msgspec.Struct)


async def ask_with_retry(
    asks: Asks,
    endpoint: Endpoint[Req, Rep],
    name: str,
    request: Req,
    *,
    patience: float = PATIENCE_S,
    deadline: float = TRY_S,
    absent: float | None = None,
    waiting: Waiting | None = None,
    token: str = "",
) -> Rep:
    """
    The answer of one service; `patience` in seconds, and `deadline`, after which an answer is believed to be lost; `absent`: seconds for
    which nobody may listen, None: as many as the patience.

    `token`: how a person is told of the place of the token with which we came, if it was one.

    Raises:
        CommandRefusedError: the service said no.
        PoolUnreachableError: it did not say anything in time.
    """
    if absent is None:
        absent = _NO_IAM_S if endpoint.role == "iam" else patience
    whole, unnoted, there = Deadline(patience), Deadline(_NOTED_S), Deadline(absent)
    told = waiting

    async def ask() -> Rep:
        return await asks.call(endpoint, name, request, deadline=max(0.1, min(deadline, whole.left())))

    def failed(error: Exception, pause: float) -> None:
        nonlocal told
        if told is not None and pause >= unnoted.left():
            told(f"waiting for the {endpoint.role} '{name}': {error}")
            told = None

    def worth_it(error: Exception) -> bool:
        return retryable(error) and not (isinstance(error, NoResponderError) and there.left() <= 0)

    try:
        return await retry(ask, _BACKOFF, retryable=worth_it, deadline=whole, hint=retry_after, failed=failed)
    except (RefusedError, *UNHEARD) as error:
        if isinstance(error, RefusedError) and error.code not in NOT_NOW:
            raise CommandRefusedError(error.code, _refusal(endpoint, error, token)) from error
        if endpoint.role == "iam" and isinstance(error, NoResponderError):
            raise PoolUnreachableError(_NO_IAM) from error
        unnamed = token and endpoint.role == "schedd" and isinstance(error, NoResponderError)
        raise PoolUnreachableError(
            f"the {endpoint.role} '{name}' did not answer within {patience:g} seconds ({error}{_QUEUES if unnamed else ''})"
        ) from error


def _refusal(endpoint: Endpoint[Any, Any], error: RefusedError, token: str) -> str:
    """The sentence of a refusal; that of the bus names subjects, which mean nothing to a person."""
    if error.code != RefusalCode.NOT_PERMITTED:
        return str(error)
    what = f"bus does not let you ask the {endpoint.role} for {endpoint.verb}"
    how = f"; you come with the token of {token}: without it this account is asked for" if token else ""
    if Caller.ADMINISTRATOR in endpoint.callers:
        return f"you are not an administrator of this pool: its {what}{how}"
    why = "your token or key is limited to less" if token else "your key is for something else"
    return f"the pool's {what}: {why}{how}"
