"""Asking a scaler that may not be there."""

from types import SimpleNamespace
from typing import cast

import pytest

from kettle.bus.ports import BusError, NoResponderError, ReplyTimeoutError
from kettle.client.connections.transport import Requests
from kettle.client.errors import PoolUnreachableError
from kettle.client.worker_pools import NoScalerError, WorkerPools
from kettle_wire.commands import worker_pools as wire


class Silence:
    """Requests that are answered only by who is asked with some patience."""

    def __init__(self, cause: BusError, *, needs: float = float("inf")) -> None:
        self._cause, self._needs = cause, needs
        self.transport = SimpleNamespace(patience=30.0)
        self.patience: list[float] = []

    async def ask(self, endpoint: object, request: object, *, patience: float) -> wire.Pools:
        del endpoint, request
        self.patience.append(patience)
        if patience < self._needs:
            raise PoolUnreachableError("nothing came") from self._cause
        return wire.Pools(pools=[])


def pools(silence: Silence) -> WorkerPools:
    """Who asks."""
    return WorkerPools(cast("Requests", silence))


async def test_who_does_not_wait_is_told_that_nobody_answers() -> None:
    """After a second, and others after ten: it may be started again just now."""
    silence = Silence(NoResponderError("nobody"))
    with pytest.raises(NoScalerError):
        await pools(silence).without_waiting().list()
    with pytest.raises(NoScalerError):
        await pools(silence).list()
    assert [1.0, 10.0] == silence.patience


async def test_a_scaler_that_has_much_to_do_gets_its_time() -> None:
    """It is there, and who asks waits as long as anybody."""
    silence = Silence(ReplyTimeoutError("late"), needs=10.0)
    assert [] == list(await pools(silence).without_waiting().list())
    assert [1.0, 10.0] == silence.patience
