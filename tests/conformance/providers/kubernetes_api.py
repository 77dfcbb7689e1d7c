"""
The part of a Kubernetes API server that pods need, which runs each pod as a process.

There is no real one to be had for tests; what this one takes is held to the schemas of the real one: an object with a field that
no release knows is refused.
"""

import importlib
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

NAMESPACE: Final = "batch"
TOKEN: Final = "token-of-an-account"
_RELEASE: Final = "1.34"
_SCHEMAS: Final[Any] = importlib.import_module("kubernetes_validate")
"""It has no types."""


@dataclass
class RunningPod:
    """An object, and its process."""

    object: dict[str, Any]
    process: subprocess.Popen[bytes] | None
    log: Path
    stuck: dict[str, Any] | None = None
    """Its status, as long as that is not what its process says."""

    def shown(self) -> dict[str, Any]:
        """As it is told."""
        return {**self.object, "status": self.stuck or {"phase": self._phase()}}

    def _phase(self) -> str:
        if self.process is None:
            return "Pending"
        match self.process.poll():
            case None:
                return "Running"
            case 0:
                return "Succeeded"
            case _:
                return "Failed"


@dataclass
class KubernetesApi:
    """The server; `place` is where logs lie."""

    place: Path
    port: int = field(default_factory=held_port)
    pods: dict[str, RunningPod] = field(default_factory=dict)
    removed: list[RunningPod] = field(default_factory=list)
    quota: int = 100
    """So many pods."""
    start: Callable[[str], dict[str, Any] | None] = lambda _name: None
    """The status of a pod that does not start; None: it does."""
    page: int = 100
    quotas: list[dict[str, Any]] | None = None
    """Objects that say what there may be; None: who asks may not know."""

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    def application(self) -> web.Application:
        """Its routes."""
        pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
        application = web.Application(middlewares=[_who])
        application.add_routes(
            [
                web.post(pods, self._create),
                web.get(pods, self._list),
                web.get(pods + "/{name}", self._get),
                web.delete(pods + "/{name}", self._delete),
                web.get(pods + "/{name}/log", self._log),
                web.get(f"/api/v1/namespaces/{NAMESPACE}/resourcequotas", self._quotas),
            ]
        )
        return application

    async def _create(self, request: web.Request) -> web.Response:
        made = json.loads(await request.read())
        try:
            _SCHEMAS.validate(made, _RELEASE, strict=True)
        except _SCHEMAS.ValidationError as error:
            return _status(422, "Invalid", str(error))
        name = made["metadata"]["name"]
        if "nosuchclass" in made["spec"].get("priorityClassName", ""):
            return _status(403, "Forbidden", "no PriorityClass with name nosuchclass was found")
        if not made["spec"]["containers"][0]["image"].strip("!"):
            return _status(422, "Invalid", "spec.containers[0].image: Required value")
        if name in self.pods:
            return _status(409, "AlreadyExists", f'pods "{name}" already exists')
        if len(self.pods) >= self.quota:
            return _status(
                403,
                "Forbidden",
                f'pods "{name}" is forbidden: exceeded quota: pods, limited: pods={self.quota}',
            )
        made["metadata"] |= {"uid": str(uuid.uuid4()), "namespace": NAMESPACE}
        if request.query.get("dryRun") != "All":
            self.pods[name] = self._started(made)
        return web.json_response(made | {"status": {"phase": "Pending"}}, status=201)

    def _started(self, made: dict[str, Any]) -> RunningPod:
        name = made["metadata"]["name"]
        log = self.place / f"{name}.log"
        if (stuck := self.start(name)) is not None:
            return RunningPod(made, None, log, stuck)
        (container,) = made["spec"]["containers"]
        environment = {each["name"]: each["value"] for each in container["env"]}
        with log.open("wb") as written:
            process = subprocess.Popen(
                container["command"],
                env={"PATH": os.environ["PATH"], **environment},
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return RunningPod(made, process, log)

    async def _list(self, request: web.Request) -> web.Response:
        key, _, value = request.query["labelSelector"].partition("=")
        names = sorted(
            name for name, each in self.pods.items() if each.object["metadata"]["labels"].get(key) == value
        )
        begin = int(request.query.get("continue", "0"))
        end = begin + min(self.page, int(request.query["limit"]))
        rest = {"continue": str(end)} if end < len(names) else {}
        items = [self.pods[name].shown() for name in names[begin:end]]
        return web.json_response({"apiVersion": "v1", "kind": "PodList", "metadata": rest, "items": items})

    async def _get(self, request: web.Request) -> web.Response:
        pod = self.pods.get(request.match_info["name"])
        return _status(404, "NotFound", "not found") if pod is None else web.json_response(pod.shown())

    async def _delete(self, request: web.Request) -> web.Response:
        options = json.loads(await request.read())
        pod = self.pods.get(request.match_info["name"])
        if pod is None:
            return _status(404, "NotFound", "not found")
        if options["preconditions"]["uid"] != pod.object["metadata"]["uid"]:
            return _status(409, "Conflict", "the UID in the precondition does not match")
        self._end(pod)
        self.removed.append(self.pods.pop(request.match_info["name"]))
        return web.json_response(pod.shown())

    async def _quotas(self, request: web.Request) -> web.Response:
        if self.quotas is None:
            return _status(403, "Forbidden", "resourcequotas is forbidden")
        for each in self.quotas:
            _SCHEMAS.validate(each, _RELEASE, strict=True)
        said: dict[str, Any] = {"apiVersion": "v1", "kind": "ResourceQuotaList", "items": self.quotas}
        return web.json_response(said)

    async def _log(self, request: web.Request) -> web.Response:
        pod = self.pods.get(request.match_info["name"])
        if pod is None:
            return _status(404, "NotFound", "not found")
        if pod.process is None:
            return _status(400, "BadRequest", "the container is waiting to start")
        return web.Response(body=pod.log.read_bytes())

    def _end(self, pod: RunningPod) -> None:
        if pod.process is not None and pod.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(pod.process.pid, signal.SIGTERM)

    def end(self) -> None:
        """End every process."""
        for pod in (*self.pods.values(), *self.removed):
            self._end(pod)
            if pod.process is not None:
                pod.process.wait(PATIENCE_S)


@web.middleware
async def _who(request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
    if request.headers.get("Authorization") != f"Bearer {TOKEN}":
        return _status(401, "Unauthorized", "Unauthorized")
    answer: web.StreamResponse = await handler(request)
    return answer


def _status(code: int, reason: str, message: str) -> web.Response:
    said = {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "reason": reason,
        "code": code,
        "message": message,
    }
    return web.json_response(said, status=code)


@asynccontextmanager
async def kubernetes_api(place: Path) -> AsyncGenerator[KubernetesApi]:
    """One while the context lasts."""
    made = KubernetesApi(place)
    runner = web.AppRunner(made.application(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", made.port).start()
    try:
        yield made
    finally:
        made.end()
        await runner.cleanup()
