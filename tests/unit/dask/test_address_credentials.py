# distributed has no types:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from distributed.comm.core import CommClosedError, FatalCommClosedError

from kettle.client.errors import PoolUnreachableError
from kettle.dask.address_credentials import KEPT_S, AddressCredentials
from kettle.dask.addresses import JobAddress
from kettle.dask.credentials import Credentials
from kettle.dask.session_service import Situation
from kettle.pki.certificates import make_authority, make_request, sign_request

HERE = JobAddress("12.0", "dask")
DAY_S = 86400.0


class Pool:
    """Gives another certificate at each question, good for so many days."""

    def __init__(self, days: int) -> None:
        self.days = days
        self.asked = 0
        self.answers = True
        self.has_cluster = True
        self.now = datetime.now(UTC)
        self._authority = make_authority("session", now=self.now)

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[Any]:
        if not self.answers:
            raise PoolUnreachableError("nobody answers")
        yield self

    async def scheduled_at(self, _address: JobAddress) -> Situation | None:
        return Situation(id="s1", name="dask-1", state="ready") if self.has_cluster else None

    async def credentials(self, _session: str) -> Credentials:
        self.asked += 1
        key, request = make_request(f"client {self.asked}")
        made = sign_request(self._authority, request, now=self.now, days=self.days)
        return Credentials(self._authority.certificate.decode(), made.decode(), key.decode())


@pytest.mark.parametrize(("days", "again"), [(365, KEPT_S), (1, KEPT_S)])
async def test_what_was_given_is_shown_for_a_while(days: int, again: float) -> None:
    """
    Connections that are made together ask once; later ones ask again, and where the pool does not answer show what is still good.
    """
    pool = Pool(days)
    clock = pool.now.timestamp()
    credentials = AddressCredentials(pool.connect, lambda: clock)
    first = await credentials.of(HERE)
    assert isinstance(first["ssl_context"], ssl.SSLContext)
    clock += again - 1
    assert first is await credentials.of(HERE)
    clock += 1
    second = await credentials.of(HERE)
    assert (2, False) == (pool.asked, first is second)
    clock += again
    pool.answers = False
    assert second is await credentials.of(HERE)
    clock += days * DAY_S
    with pytest.raises(CommClosedError, match="nobody answers"):
        await credentials.of(HERE)
    pool.answers = True
    await credentials.of(HERE)
    assert 3 == pool.asked


async def test_what_is_near_its_end_is_not_shown_again() -> None:
    """A third of its life before: who connects then may stay for longer than that."""
    pool = Pool(1)
    clock = pool.now.timestamp() + DAY_S * 2 / 3
    credentials = AddressCredentials(pool.connect, lambda: clock)
    await credentials.of(HERE)
    await credentials.of(HERE)
    assert 2 == pool.asked


async def test_what_is_refused_is_asked_for_again() -> None:
    """And a cluster that there is no more has no credentials that are kept."""
    pool = Pool(365)
    credentials = AddressCredentials(pool.connect, pool.now.timestamp)
    first = await credentials.of(HERE)
    credentials.forget(HERE)
    assert first is not await credentials.of(HERE)
    credentials.forget(HERE)
    pool.has_cluster = False
    with pytest.raises(FatalCommClosedError, match="no cluster that is yours"):
        await credentials.of(HERE)
    pool.answers = False
    with pytest.raises(CommClosedError, match="nobody answers"):
        await credentials.of(HERE)
