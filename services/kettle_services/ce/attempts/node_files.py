"""The HTTPS server from which nodes fetch the files of their jobs, and to which they send the results."""

import asyncio
import hashlib
import hmac
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
from aiohttp import web

from kettle.bus.ports import BusError, RefusedError
from kettle.bus.retryable import retryable
from kettle.http.problems import document_of, problem_response
from kettle.http.requests import bearer_token
from kettle.runtime.http_server import serving
from kettle.runtime.settings_problems import SettingsError
from kettle.runtime.tls_listener import Rereading, tls_context
from kettle_services.ce.attempts.carried_sandboxes import MOST_BYTES, CarriedSandboxes
from kettle_services.ce.batch.settings import FilesSettings
from kettle_services.ce.domain.batch.carried import NUMBER, PAYLOADS, Way
from kettle_services.ce.domain.batch.script import number_in
from kettle_wire.codes import RefusalCode
from kettle_wire.payloads import PayloadReport

_PIECE: Final = 1 << 20
_MOST_REPORT: Final = 1 << 20
"""Bytes of a report."""
_REFUSED: Final = {RefusalCode.LIMIT: 429, RefusalCode.NOT_FOUND: 404, RefusalCode.NOT_RUNNING: 409}
_decode: Final = msgspec.json.Decoder(PayloadReport).decode

Reported = Callable[[str, PayloadReport], Awaitable[None]]
"""
Records what the pilot with an intent says that it runs.  Raises RefusedError; BusError: not now.
"""


class _Served(msgspec.Struct, frozen=True):
    """What is answered for one batch system."""

    sandboxes: CarriedSandboxes
    heard: Callable[[], None]
    reported: Reported


class NodeFiles:
    """
    Files by tokens that are each one job's, made from a key that never leaves this machine: nothing is kept of them, and the token of a
    job that is over opens nothing.
    """

    def __init__(self, settings: FilesSettings, home: Path) -> None:
        """Raises SettingsError: the key, or the authority's certificate, cannot be had."""
        self._settings: Final = settings
        self._key: Final = _key(home / "node-files.key")
        self._authority: Final = _authority(settings.authority)
        self._served: Final[dict[str, _Served]] = {}

    def way(self, system: str, intent: str) -> Way:
        """By which the files of one job go."""
        return Way(
            url=f"{self._settings.url.rstrip('/')}/files/{system}/{intent}",
            token=self._token(system, intent),
            payloads_token=self._token(system, intent, PAYLOADS),
            authority=self._authority,
        )

    def serve(
        self, system: str, sandboxes: CarriedSandboxes, heard: Callable[[], None], reported: Reported
    ) -> None:
        """From now on also those of this batch system; `heard`: one of its nodes has asked something."""
        self._served[system] = _Served(sandboxes, heard, reported)

    def _token(self, system: str, intent: str, purpose: str = "") -> str:
        """
        What opens the files of a job, or what lets it do one other thing: who has one of them has not the other.
        """
        about = f"{system}/{intent}/{purpose}" if purpose else f"{system}/{intent}"
        return hmac.new(self._key, about.encode(), hashlib.sha256).hexdigest()

    @asynccontextmanager
    async def running(self, rt: Rereading) -> AsyncGenerator[int]:
        """Answer while the context lasts; yields the port.  Raises SettingsError."""
        settings = self._settings
        encryption = None
        if settings.certificate:
            encryption = tls_context(rt, certificate=settings.certificate, key=settings.key)
        async with serving(self.application(), settings.address, settings.port, encryption) as port:
            yield port

    def application(self) -> web.Application:
        """Its routes."""
        application = web.Application()
        application.router.add_get("/files/{system}/{intent}/in", self._inputs)
        application.router.add_put("/files/{system}/{intent}/out", self._results)
        application.router.add_post(f"/files/{{system}}/{{intent}}/{PAYLOADS}", self._payloads)
        return application

    def _asked(self, request: web.Request, purpose: str = "") -> tuple[_Served, str] | None:
        """Of which job a request is; None: its token is not of that one, or for something else."""
        system, intent = request.match_info["system"], request.match_info["intent"]
        right = self._token(system, intent, purpose)
        served = self._served.get(system)
        if served is None or not hmac.compare_digest(bearer_token(request).encode(), right.encode()):
            return None
        return served, intent

    async def _inputs(self, request: web.Request) -> web.StreamResponse:
        asked = self._asked(request)
        if asked is None:
            return _refused(401, RefusalCode.DENIED, "the token opens no files of this job")
        served, intent = asked
        if not (number := number_in(request.headers.get(NUMBER, ""))):
            return _refused(400, RefusalCode.MALFORMED, f"the header {NUMBER} says no job of a batch system")
        try:
            found = await asyncio.to_thread(served.sandboxes.inputs, intent, number)
        except FileNotFoundError:
            return _refused(404, RefusalCode.NOT_FOUND, "the job is over")
        if found is None:
            return _refused(409, RefusalCode.REFUSED, "another job of the batch system runs for it")
        served.heard()
        return web.FileResponse(found, headers={"Content-Type": "application/gzip"})

    async def _results(self, request: web.Request) -> web.StreamResponse:
        asked = self._asked(request)
        if asked is None:
            return _refused(401, RefusalCode.DENIED, "the token opens no files of this job")
        served, intent = asked
        size = 0
        try:
            draft = await asyncio.to_thread(served.sandboxes.draft, intent)
            try:
                async for piece in request.content.iter_chunked(_PIECE):
                    size += len(piece)
                    if size > MOST_BYTES:
                        return _refused(
                            413, RefusalCode.TOO_LARGE, f"the results have more than {MOST_BYTES >> 30} GiB"
                        )
                    await asyncio.to_thread(draft.write, piece)
                await asyncio.to_thread(served.sandboxes.arrived, intent, draft)
            finally:
                await asyncio.to_thread(draft.close)
        except FileNotFoundError:
            return _refused(404, RefusalCode.NOT_FOUND, "no job has begun with these files, or it is over")
        served.heard()
        return web.Response(status=204)

    async def _payloads(self, request: web.Request) -> web.StreamResponse:
        asked = self._asked(request, PAYLOADS)
        if asked is None:
            return _refused(401, RefusalCode.DENIED, "the token says nothing for this job")
        served, intent = asked
        data = bytearray()
        async for piece in request.content.iter_chunked(_PIECE):
            data += piece
            if len(data) > _MOST_REPORT:
                return _refused(
                    413, RefusalCode.TOO_LARGE, f"a report has more than {_MOST_REPORT >> 10} KiB"
                )
        try:
            await served.reported(intent, _decode(data))
        except msgspec.MsgspecError as error:
            return _refused(422, RefusalCode.MALFORMED, f"the report cannot be read: {error}")
        except RefusedError as error:
            if retryable(error):
                return _refused(503, RefusalCode(error.code), str(error))
            return _refused(_REFUSED.get(RefusalCode(error.code), 422), RefusalCode(error.code), str(error))
        except BusError as error:
            return _refused(503, RefusalCode.UNAVAILABLE, f"the access point does not answer: {error}")
        return web.Response(status=204)


def _refused(status: int, code: RefusalCode, detail: str) -> web.Response:
    return problem_response(document_of(status, code, detail))


def _key(path: Path) -> bytes:
    """The key that tokens are made from; made when there is none."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            draft = path.with_suffix(".new")
            fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(fd, "wb") as file:  # noqa: PTH123 - a descriptor
                file.write(os.urandom(32))
                file.flush()
                os.fsync(fd)
            draft.rename(path)
        return path.read_bytes()
    except OSError as error:
        raise SettingsError(f"[ce.files]: its key cannot be kept in {path}: {error.strerror}") from None


def _authority(path: str) -> str:
    if not path:
        return ""
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"[ce.files]: authority {path} cannot be read: {error}") from None
