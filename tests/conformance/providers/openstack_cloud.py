"""
The part of an OpenStack that servers need: a Keystone and a Nova, which runs the user data of each server as a process.
"""

import base64
import json
import os
import signal
import subprocess
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.held_port import held_port

PASSWORD: Final = "a-password"
IMAGE: Final = "8f3f0a3e-0000-0000-0000-000000000001"
_FLAVOURS: Final = [{"id": "f1", "name": "m1.small", "vcpus": 2, "ram": 4096}]


@dataclass
class Cloud:
    """The cloud; `place` is where user data lies."""

    place: Path
    port: int = field(default_factory=held_port)
    servers: dict[str, dict[str, Any]] = field(default_factory=dict)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    fault: str = ""
    """Of each new server, which then is in ERROR."""
    quota: int = 10
    tokens: set[str] = field(default_factory=set)
    seen_at: str = ""
    """Where those who ask find Nova."""

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    def application(self) -> web.Application:
        """Its routes."""
        application = web.Application(middlewares=[self._who])
        application.add_routes(
            [
                web.post("/v3/auth/tokens", self._token),
                web.get("/v2.1/flavors/detail", self._flavours),
                web.get("/v2.1/images/{id}", self._image),
                web.get("/v2.1/limits", self._limits),
                web.post("/v2.1/servers", self._create),
                web.get("/v2.1/servers/detail", self._list),
                web.get("/v2.1/servers/{id}", self._get),
                web.delete("/v2.1/servers/{id}", self._delete),
                web.post("/v2.1/servers/{id}/action", self._act),
            ]
        )
        return application

    @web.middleware
    async def _who(self, request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
        if not request.path.startswith("/v3") and request.headers.get("X-Auth-Token") not in self.tokens:
            return _error(401, "unauthorized", "The request you have made requires authentication.")
        answer: web.StreamResponse = await handler(request)
        return answer

    async def _token(self, request: web.Request) -> web.Response:
        asked = json.loads(await request.read())["auth"]["identity"]
        if asked["methods"] != ["password"] or asked["password"]["user"]["password"] != PASSWORD:
            return _error(401, "error", "The request you have made requires authentication.")
        token = uuid.uuid4().hex
        self.tokens.add(token)
        endpoint = {"url": f"{self.seen_at or self.url}/v2.1", "interface": "public", "region": "one"}
        catalog = [{"type": "compute", "name": "nova", "endpoints": [endpoint]}]
        return web.json_response(
            {"token": {"catalog": catalog}}, status=201, headers={"X-Subject-Token": token}
        )

    async def _flavours(self, request: web.Request) -> web.Response:
        return web.json_response({"flavors": _FLAVOURS})

    async def _image(self, request: web.Request) -> web.Response:
        if request.match_info["id"] != IMAGE:
            return _error(404, "itemNotFound", "Image not found.")
        return web.json_response({"image": {"id": IMAGE}})

    async def _limits(self, request: web.Request) -> web.Response:
        used = {"totalInstancesUsed": len(self.servers), "totalCoresUsed": 2 * len(self.servers)}
        return web.json_response(
            {
                "limits": {
                    "absolute": {
                        "maxTotalInstances": self.quota,
                        "maxTotalCores": 20,
                        "maxTotalRAMSize": -1,
                        **used,
                    }
                }
            }
        )

    async def _create(self, request: web.Request) -> web.Response:
        asked = json.loads(await request.read())["server"]
        if asked["imageRef"] != IMAGE:
            return _error(400, "badRequest", "Can not find requested image")
        if len(self.servers) >= self.quota:
            return _error(
                403,
                "forbidden",
                "Quota exceeded for instances: Requested 1, but already used 10 of 10 instances",
            )
        number = str(uuid.uuid4())
        made = {"id": number, "name": asked["name"], "metadata": asked["metadata"], "status": "ACTIVE"}
        self.servers[number] = made
        if self.fault:
            made |= {"status": "ERROR", "fault": {"code": 500, "message": self.fault}}
        else:
            self._boot(number, base64.b64decode(asked["user_data"]))
        return web.json_response({"server": {"id": number, "links": []}}, status=202)

    def _boot(self, number: str, script: bytes) -> None:
        assert b"shutdown -" not in script, "it would switch this machine off"
        path = self.place / number
        path.write_bytes(script)
        quiet = subprocess.DEVNULL
        self.processes[number] = subprocess.Popen(
            ["sh", path], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
        )

    async def _list(self, request: web.Request) -> web.Response:
        numbers = sorted(self.servers)
        after = request.query.get("marker", "")
        page = [self.servers[each] for each in numbers if each > after][: int(request.query["limit"])]
        return web.json_response({"servers": page})

    async def _get(self, request: web.Request) -> web.Response:
        found = self.servers.get(request.match_info["id"])
        return (
            _error(404, "itemNotFound", "not found")
            if found is None
            else web.json_response({"server": found})
        )

    async def _delete(self, request: web.Request) -> web.Response:
        number = request.match_info["id"]
        if self.servers.pop(number, None) is None:
            return _error(404, "itemNotFound", "not found")
        self._end(number)
        return web.Response(status=204)

    async def _act(self, request: web.Request) -> web.Response:
        assert "os-getConsoleOutput" in json.loads(await request.read())
        return web.json_response({"output": f"console of {request.match_info['id']}"})

    def _end(self, number: str) -> None:
        process = self.processes.get(number)
        if process is not None and process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)

    def end(self) -> None:
        """End every process."""
        for number, process in self.processes.items():
            self._end(number)
            process.wait(PATIENCE_S)


def _error(status: int, name: str, message: str) -> web.Response:
    return web.json_response({name: {"code": status, "message": message}}, status=status)


@asynccontextmanager
async def openstack_cloud(place: Path) -> AsyncGenerator[Cloud]:
    """One while the context lasts."""
    made = Cloud(place)
    runner = web.AppRunner(made.application(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", made.port).start()
    try:
        yield made
    finally:
        made.end()
        await runner.cleanup()
