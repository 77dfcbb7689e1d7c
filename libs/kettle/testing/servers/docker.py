"""
NATS and PostgreSQL in containers, as most who try this out have them: through testcontainers, where there is Docker.
"""

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from kettle.bus.nats import NatsBus
from kettle.storage.database import Database
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.locations import Addresses, NotHereError
from kettle_wire.identity import daemon
from kettle_wire.subjects import Subjects

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

_IMAGES: Final = {"KETTLE_TEST_NATS_IMAGE": "nats:2", "KETTLE_TEST_POSTGRES_IMAGE": "postgres:17"}
_DOCKER_HOST: Final = "unix:///var/run/docker.sock"
_NATS_PORT: Final = 4222
_POSTGRES_PORT: Final = 5432
_NATS_CONFIG_PATH: Final = "/etc/nats/kettle.conf"
_NATS_CONFIG: Final = """\
port: 4222
max_payload: 8MB
jetstream { store_dir: "/data", max_file_store: 64GB, max_memory_store: 1GB }
"""


def docker_is_missing() -> str:
    """Why there is no Docker engine to be had; empty if there is one."""
    # The engine's client forgets to close a socket that it could not connect.
    host = urlsplit(os.environ.get("DOCKER_HOST") or _DOCKER_HOST)
    if host.scheme == "unix" and (why := _not_connected(host.path)):
        return f"no Docker engine answers at {host.path}: {why} (Debian package docker.io)"
    import docker  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs] - it has none

    engine: Any = docker
    try:
        client = engine.from_env()
    except engine.errors.DockerException as error:
        return f"no Docker engine answers here: {error} (Debian package docker.io)"
    client.close()
    return ""


def _not_connected(path: str) -> str:
    with socket.socket(socket.AF_UNIX) as engine:
        try:
            engine.connect(path)
        except OSError as error:
            return error.strerror or str(error)
    return ""


@asynccontextmanager
async def containers(environ: Mapping[str, str] = os.environ) -> AsyncGenerator[Addresses]:
    """
    Both servers, gone at the end.

    Raises:
        NotHereError: there is no Docker engine.
    """
    if why := await asyncio.to_thread(docker_is_missing):
        raise NotHereError(why)
    nats_image, postgres_image = (environ.get(name) or usual for name, usual in _IMAGES.items())
    with ExitStack() as stack:
        addresses = await asyncio.to_thread(_start, nats_image, postgres_image, stack)
        async with (
            NatsBus.connect(
                addresses.nats_url, subjects=Subjects("test"), identity=daemon("test"), patience=PATIENCE_S
            ),
            Database.connect(addresses.database_url, connections=1, patience=PATIENCE_S),
        ):
            pass  # both serve
        yield addresses


def _start(nats_image: str, postgres_image: str, stack: ExitStack) -> Addresses:
    from testcontainers.core.container import DockerContainer

    nats = (
        DockerContainer(nats_image)
        .with_exposed_ports(_NATS_PORT)
        .with_copy_into_container(_NATS_CONFIG.encode(), _NATS_CONFIG_PATH)
        .with_command(["--config", _NATS_CONFIG_PATH])
    )
    password = secrets.token_hex(16)
    postgres = (
        DockerContainer(postgres_image)
        .with_exposed_ports(_POSTGRES_PORT)
        .with_envs(POSTGRES_USER="kettle", POSTGRES_PASSWORD=password, POSTGRES_DB="kettle")
        .with_command(["-c", "fsync=off"])  # what tests write need not survive the machine
    )
    host, port = _published(stack.enter_context(nats), _NATS_PORT)
    database_host, database_port = _published(stack.enter_context(postgres), _POSTGRES_PORT)
    return Addresses(
        nats_url=f"nats://{host}:{port}",
        nats_credentials="",
        nats_replicas=1,
        database_url=f"postgresql://kettle:{password}@{database_host}:{database_port}/kettle",
    )


def _published(container: "DockerContainer", port: int) -> tuple[str, int]:
    return container.get_container_host_ip(), container.get_exposed_port(port)
