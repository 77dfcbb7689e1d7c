"""
The service of sessions of a pool, as cluster objects see it: through the client that `kettle` itself uses.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from kettle.client import Client
from kettle.client.errors import ClientError, CommandRefusedError
from kettle.client.published import GatewayAccess, StreamNotOpenedError, open_stream
from kettle.dask.addresses import JobAddress
from kettle.dask.credentials import Credentials
from kettle.dask.reports import Dismissed, Orders, Report
from kettle.dask.session_service import Limits, Situation, Wish
from kettle.pki.certificates import make_request
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.sessions import NewSession, SessionView
from kettle_wire.events import decode
from kettle_wire.sessions import SessionAdapt, SessionSize

KIND: Final = "dask"
_OVER: Final = frozenset({RefusalCode.NOT_FOUND, RefusalCode.DENIED})
"""A session that is forgotten, or that is no longer ours."""


@asynccontextmanager
async def sessions_of_pool(
    *, home: Path | None = None, environ: Mapping[str, str] | None = None
) -> AsyncGenerator["PoolSessions"]:
    """
    Sessions of the pool that `home` or the environment names, as for `kettle`.

    Raises ClientError: no pool is known here, or its bus does not answer.
    """
    async with Client.connect(home=home, environ=os.environ if environ is None else environ) as client:
        yield PoolSessions(client)


class PoolSessions:
    """See `kettle.dask.session_service.SessionService`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._access: GatewayAccess | None = None
        self._asking = asyncio.Lock()

    async def create(self, wish: Wish) -> Situation:
        """Begin a session."""
        adapt = wish.adapt
        new = NewSession(
            kind=KIND,
            profile=wish.profile,
            name=wish.name or None,
            image=wish.image,
            size=SessionSize(
                workers=wish.workers,
                cpus=wish.cores or None,
                memory=wish.memory_mib or None,
                gpus=wish.gpus or None,
                disk=wish.disk_mib or None,
            ),
            adapt=None if adapt is None else SessionAdapt(minimum=adapt.minimum, maximum=adapt.maximum),
            site=wish.site,
            life=wish.life_s,
            idle=wish.idle_s,
            share=list(wish.share),
            local=wish.local,
        )
        return situation_of(await self._client.sessions.create(new))

    async def show(self, session: str) -> Situation:
        """By its id, or by its name."""
        view = await self._client.sessions.show(session)
        if view.kind != KIND:
            raise CommandRefusedError(
                RefusalCode.UNKNOWN, f"{session} is a session of the kind {view.kind}, no cluster"
            )
        return situation_of(view)

    async def scheduled_at(self, address: JobAddress) -> Situation | None:
        """The cluster that has its scheduler there; None: none that is one's own, or shared with one."""
        for view in await self._client.sessions.list():
            if view.kind == KIND and address.is_of(view.scheduler.contact):
                return situation_of(view)
        return None

    async def follow(self, session: str, after: int, wait_s: float) -> Situation:
        """As soon as there are more than `after` events, or after that time."""
        return situation_of((await self._client.sessions.news(session, after, wait=wait_s)).session)

    async def scale(self, session: str, workers: int) -> Situation:
        """To so many, whatever the load is."""
        return situation_of(await self._client.sessions.scale(session, workers))

    async def adapt(self, session: str, limits: Limits) -> Situation:
        """To the load."""
        return situation_of(await self._client.sessions.adapt(session, limits.minimum, limits.maximum))

    async def stop(self, session: str) -> Situation:
        """End it, and its jobs."""
        return situation_of(await self._client.sessions.stop(session))

    async def report_scheduler(self, session: str, report: Report) -> Orders:
        """Say how a scheduler is that is no job, and hear what it is to do."""
        try:
            return await self._client.sessions.report(session, report.sent())
        except CommandRefusedError as error:
            if error.code in _OVER:
                return Dismissed()
            raise

    async def credentials(self, session: str) -> Credentials:
        """A certificate of the session, for a key that is made here."""
        key, request = make_request("client")
        signed = await self._client.sessions.certificate(session, request)
        return Credentials(signed.authority.decode(), signed.certificate.decode(), key.decode())

    async def story(self, session: str) -> list[str]:
        """A line for each of its events."""
        lines: list[str] = []
        while True:
            news = await self._client.sessions.news(session, len(lines), wait=0.0)
            if not news.events:
                return lines
            for each in news.events:
                at = datetime.fromtimestamp(each.at / 1e6, UTC).astimezone()
                event = decode(bytes(each.data))
                said = ", ".join(
                    f"{name} {value}"
                    for name, value in msgspec.structs.asdict(event).items()
                    if value not in ("", None, 0)
                )
                lines.append(f"{at:%Y-%m-%d %H:%M:%S} {type(event).__name__}: {said}")

    async def link(self, job: str, service: str) -> str:
        """Where a browser finds a service; empty where the pool has no gateway."""
        try:
            access = await self._gateway()
        except ClientError:
            return ""
        return f"{access.url}/jobs/{job}/{service}/status"

    async def open_stream(self, job: str, service: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Through the gateway; raises OSError, which Dask tries again for a while."""
        try:
            return await open_stream(job, service, access=await self._gateway())
        except ClientError as error:
            if isinstance(error, StreamNotOpenedError) and error.status == 401:
                self._access = None  # what was shown is over
            raise ConnectionError(str(error)) from error

    async def _gateway(self) -> GatewayAccess:
        async with self._asking:
            if self._access is None:
                self._access = await self._client.gateway.access()
            return self._access


def situation_of(view: SessionView) -> Situation:
    """What a cluster object wants to know of a session."""
    adapt = view.target.adapt
    return Situation(
        id=view.id,
        name=view.name,
        profile=view.profile,
        state=view.state,
        reason=view.reason,
        summary=view.summary,
        wanted=view.wanted,
        running=view.running,
        scheduler_job=view.scheduler.job,
        contact=view.scheduler.contact,
        versions=view.versions,
        adapt=None if adapt is None else Limits(adapt.minimum, adapt.maximum),
        events=view.events,
    )
