"""
Servers as jobs of their own, where the pool has no service for sessions.

The job begins with two files: the program that starts the server, and what nobody else may know.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from kettle.jobs.needed_tokens import SERVICES
from kettle.jobs.quoting import join_v2
from kettle.jupyterhub import server
from kettle.jupyterhub.errors import GatewayRefusedError, GatewayUnreachableError, ServerFailedError
from kettle.jupyterhub.gateway_access import PoolGateway
from kettle.jupyterhub.server_orders import SECRETS, SERVICE, OfferedProfile, ServerOrder, ServerSeen
from kettle.transfer.spooled_jobs import HELD_FOR
from kettle_wire.ads.types import Ad, Expr
from kettle_wire.cloud_events import kind_of_type
from kettle_wire.rest.files import Tail
from kettle_wire.rest.jobs import Job, Jobs, JobSelection, Outcomes, Submission, SubmittedJobs
from kettle_wire.rest.past import Why
from kettle_wire.rest.spooling import FileSent, InputFile, Inputs, InputsGiven

MARK: Final = "KettleHubServer"
"""The attribute of a job that says which server of which hub it is."""
PROGRAM: Final = "kettle-hub-server"
_ERRORS: Final = "server.err"
_LOOK_AGAIN_S: Final = 3.0
"""A job that waits is asked why so often."""
_TRY_AGAIN_S: Final = 0.25
"""A job that runs is tried so often: that its service is there is told by nobody."""
_NOT_FOUND: Final = 404
_ENDED: Final = frozenset({_NOT_FOUND, 410})
"""Statuses of connections to the service of a job that does not run any more."""
_LAST_WORDS: Final = 4096
"""Bytes."""


class ServerProfile(OfferedProfile, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A profile as the hub's configuration has it."""

    disk: int = 256
    """MiB."""
    requirements: str = ""
    """An expression that a slot must meet, beside what the size needs."""
    attributes: Mapping[str, str | int | float | bool] = {}
    """Further attributes of the job."""


class JobServers:
    """Implements `PoolServers` with jobs."""

    def __init__(self, gateway: PoolGateway, profiles: Sequence[ServerProfile]) -> None:
        """`profiles`: the usual one first."""
        self._gateway = gateway
        self._profiles = profiles

    async def profiles(self, token: str) -> Sequence[OfferedProfile]:
        """See `PoolServers`."""
        return self._profiles

    async def start(self, order: ServerOrder, token: str) -> str:
        """See `PoolServers`."""
        await self._end_left_over(order.mark, token)
        submission = Submission(ad=job_ad(order, self._profile(order.profile)))
        made = await self._gateway.ask(
            "POST",
            "/v2/jobs",
            token,
            SubmittedJobs,
            body=submission,
            parameters={"spool": "1"},
            key=order.key,
        )
        id_ = f"{made.cluster}.0@{made.schedd}"
        try:
            await self._give_files(id_, made, order, token)
            # Who asks about it from now on is not told that there is no such job.
            seen = {"at_least": made.position}
            await self._gateway.ask("GET", _path(id_), token, Job, parameters=seen)
        except BaseException:
            await asyncio.shield(self.stop(id_, token))
            raise
        return id_

    async def _give_files(self, id_: str, made: SubmittedJobs, order: ServerOrder, token: str) -> None:
        program = Path(server.__file__).read_bytes()
        secrets = msgspec.json.encode(dict(order.secrets))
        files: list[InputFile] = []
        for path, content in ((PROGRAM, program), (SECRETS, secrets)):
            sent = await self._gateway.ask("PUT", f"{_path(id_)}/files/{path}", token, FileSent, data=content)
            digest = hashlib.sha256(content).hexdigest()
            if (sent.sha256, sent.have) != (digest, len(content)):
                raise GatewayUnreachableError(f"{path} has not come to the access point as it was sent")
            files.append(InputFile(path=path, sha256=digest, size=len(content), executable=path == PROGRAM))
        cluster = quote(f"{made.cluster}@{made.schedd}", safe="@")
        await self._gateway.ask(
            "POST", f"/v2/clusters/{cluster}/inputs", token, InputsGiven, body=Inputs(files=files)
        )

    async def _end_left_over(self, mark: str, token: str) -> None:
        """A hub that was killed at the wrong moment does not know of what it had begun."""
        who = await self._gateway.ask(
            "GET", "/v2/jobs", token, Jobs, parameters={"filter": f'MY.{MARK} == "{mark}"'}
        )
        left = [job.id for job in who.jobs or [] if job.state not in {"completed", "removed"}]
        if left:
            await self._remove(left, "the hub starts this server again", token)

    def _profile(self, name: str) -> ServerProfile:
        for each in self._profiles:
            if each.name == name:
                return each
        known = ", ".join(each.name for each in self._profiles)
        raise ServerFailedError(f"there is no profile {name!r} (any more): choose one of {known}")

    async def news(self, id_: str, token: str) -> AsyncGenerator[ServerSeen]:
        """See `PoolServers`."""
        seen = await self._tried(id_, token)
        yield seen
        stream = self._gateway.follow(f"{_path(id_)}/events", token)
        async with aclosing(stream):
            next_ = asyncio.ensure_future(anext(stream))
            try:
                while not seen.is_over:
                    waits = {"queued": _LOOK_AGAIN_S, "starting": _TRY_AGAIN_S}.get(seen.state)
                    await asyncio.wait({next_}, timeout=waits)
                    if next_.done():
                        name, said = next_.result()
                        next_ = asyncio.ensure_future(anext(stream))
                        if name in {"cut", "gap"} or not _tells(said):
                            continue
                    newer = await self._tried(id_, token)
                    if newer != seen:
                        seen = newer
                        yield seen
            except StopAsyncIteration:
                raise GatewayUnreachableError("the gateway has ended the stream of events") from None
            finally:
                next_.cancel()
                await asyncio.wait({next_})

    async def look(self, id_: str, token: str) -> ServerSeen:
        """See `PoolServers`."""
        try:
            job = await self._gateway.ask("GET", _path(id_), token, Job)
        except GatewayRefusedError as refusal:
            if refusal.status == _NOT_FOUND:
                return ServerSeen(state="ended", reason=f"the pool has no job {id_}", exit_code=1)
            raise
        why = ""
        if job.state == "idle":
            why = reason_of(await self._gateway.ask("GET", f"{_path(id_)}/why", token, Why))
        return seen_of(job, why)

    async def _tried(self, id_: str, token: str) -> ServerSeen:
        """How far it is; a job that runs is ready when its service can be reached."""
        seen = await self.look(id_, token)
        if seen.state != "starting":
            return seen
        try:
            _, writer = await self._gateway.connect(id_, SERVICE, token)
        except GatewayUnreachableError:
            return seen
        except GatewayRefusedError as refusal:
            if refusal.status not in _ENDED:
                raise
            return seen  # what is asked next says how
        writer.close()
        return msgspec.structs.replace(seen, state="ready")

    async def last_words(self, id_: str, token: str) -> str:
        """See `PoolServers`."""
        tail = await self._gateway.ask(
            "GET", f"{_path(id_)}/tail", token, Tail, parameters={"stream": "stderr"}
        )
        return tail.text

    async def stop(self, id_: str, token: str) -> None:
        """See `PoolServers`."""
        await self._remove([id_], "the server was stopped in JupyterHub", token)

    async def _remove(self, ids: list[str], reason: str, token: str) -> None:
        await self._gateway.ask(
            "POST", "/v2/jobs:remove", token, Outcomes, body=JobSelection(ids=ids, reason=reason)
        )


def job_ad(order: ServerOrder, profile: ServerProfile) -> Ad:
    """The job of a server."""
    size = order.size
    environment = [f"{name}={value}" for name, value in order.environment.items()]
    ad: Ad = {
        "InteractiveJob": True,
        **profile.attributes,
        "Cmd": PROGRAM,
        "Arguments": join_v2(list(order.command)),
        "Environment": join_v2(environment),
        "Out": "server.out",
        "Err": _ERRORS,
        "TransferInput": SECRETS,
        "TransferOutput": "",
        "RequestCpus": size.cpus or profile.cpus,
        "RequestMemory": size.memory or profile.memory,
        "RequestDisk": (size.disk or profile.disk) << 10,
        MARK: order.mark,
    }
    if order.tokens:
        ad[SERVICES] = ",".join(order.tokens)
    if gpus := profile.gpus if size.gpus is None else size.gpus:
        ad["RequestGPUs"] = gpus
    image = order.image or profile.image
    ad |= _image(image)
    if profile.requirements:
        needs = ["Cpus", "Memory", "Disk", *(["GPUs"] if gpus else [])]
        clauses = [f"({profile.requirements})", *(f"(TARGET.{each} >= Request{each})" for each in needs)]
        clauses += ["TARGET.HasFileTransfer", *(["TARGET.HasContainer"] if image else [])]
        ad["Requirements"] = Expr(" && ".join(clauses))
    return ad


def _image(image: str) -> Ad:
    """An image of a registry, or one that is on the machines: a directory, or a file of Apptainer."""
    if not image:
        return {}
    ad: Ad = {"ContainerImage": image, "WantContainer": True}
    if image.startswith("docker://"):
        return {**ad, "ContainerImageSource": "docker", "WantDockerImage": True}
    return {**ad, "WantSIF" if image.endswith(".sif") else "WantSandboxImage": True}


def reason_of(why: Why) -> str:
    """
    Why a job waits, as the person at the hub is told it: how long it has waited, and commands, are left out.
    """
    told = [each for each in why.more if not each.startswith("Next:")]
    return " ".join(told) or "the pool looks for a machine"


def seen_of(job: Job, why: str) -> ServerSeen:
    """What a job says about its server; `why`: why it waits, if it does."""
    name = f"{job.cluster}.{job.proc}"
    match job.state:
        case "idle":
            return ServerSeen(state="queued", reason=why, job=name)
        case "running":
            where = f"on {job.slot}" if job.slot else "on a machine"
            return ServerSeen(state="starting", reason=f"job {name} {where}", job=name)
        case "suspended":
            return ServerSeen(state="degraded", reason=f"job {name} is suspended by its machine", job=name)
        case "held" if job.hold_reason == HELD_FOR:
            return ServerSeen(state="requested", reason="its files are sent", job=name)
        case "held":
            return ServerSeen(
                state="degraded", reason=f"job {name} is on hold: {job.hold_reason}", job=name, is_stuck=True
            )
        case "removed":
            return ServerSeen(state="ended", reason=f"job {name} was removed", exit_code=1)
        case "completed":
            how = f"with the signal {job.exit_signal}" if job.exit_signal else f"with code {job.exit_code}"
            code = 128 + job.exit_signal if job.exit_signal else job.exit_code or 0
            return ServerSeen(state="ended", reason=f"the server has exited {how}", exit_code=code)


def _tells(said: Mapping[str, object]) -> bool:
    """Whether an event may have changed how far a server is."""
    return kind_of_type(str(said.get("type"))) not in {"job.told", "job.edited"}


def _path(id_: str) -> str:
    return f"/v2/jobs/{quote(id_, safe='@')}"
