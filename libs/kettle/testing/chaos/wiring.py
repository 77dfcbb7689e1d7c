"""
What stands between each service of a pool and the servers: a proxy for each of its connections, and its clock.

Where a service connects is read from the environment that the master gave it, so that this holds for whatever a pool
runs: further schedds, standbys, services that ask a database of their own.
"""

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, quote, urlsplit

import msgspec

from kettle.testing.chaos.clock import Clock, library
from kettle.testing.chaos.proxy import Proxy

NATS: Final = "nats"
POSTGRES: Final = "postgres"
SERVERS: Final = (NATS, POSTGRES)
_URLS: Final[Mapping[str, str]] = {"KETTLE_NATS_URL": NATS, "KETTLE_DATABASE_URL": POSTGRES}
_PG_PORT: Final = 5432


class Wiring(msgspec.Struct, frozen=True):
    """The lines and clocks of a pool's services."""

    lines: dict[str, Proxy]
    """By `service>server`."""
    clocks: dict[str, Clock]
    environment: dict[str, dict[str, str]]
    """What each service has to be started with, for `[master] environment`."""


@asynccontextmanager
async def wired(
    pids: Mapping[str, int], directory: Path, *, clocks: Collection[str]
) -> AsyncGenerator[Wiring]:
    """
    Put proxies between running services and their servers, for their next start; `pids` by service.

    The services named in `clocks` have one that can be turned, by a library that is loaded with the program: so they are
    executed, which takes several times the processor time of a fork.
    """
    wiring = Wiring({}, {}, {})
    turnable = clocks if library() is not None else ()
    try:
        for index, (service, pid) in enumerate(pids.items()):
            place = directory / str(index)
            place.mkdir()
            given = await asyncio.to_thread(environ_of, pid)
            own = wiring.environment[service] = {}
            for variable, server in _URLS.items():
                if url := given.get(variable):
                    proxy, own[variable] = await _between(url, place)
                    wiring.lines[f"{service}>{server}"] = proxy
            if service in turnable:
                clock = wiring.clocks[service] = Clock(place / "clock")
                own |= clock.environ()
        yield wiring
    finally:
        for proxy in wiring.lines.values():
            await proxy.close()


def environ_of(pid: int) -> dict[str, str]:
    """The environment with which a process of ours was started."""
    parts = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    return dict(part.split("=", 1) for part in parts if "=" in part)


async def _between(url: str, place: Path) -> tuple[Proxy, str]:
    """A proxy before the server of a URL, and the URL of the proxy."""
    split = urlsplit(url)
    host = parse_qs(split.query).get("host", [""])[0]
    if host.startswith("/"):  # PostgreSQL's way to name the directory of a socket
        proxy = Proxy(Path(host) / f".s.PGSQL.{_PG_PORT}")
        await proxy.listen(place / f".s.PGSQL.{_PG_PORT}")
        return proxy, url.replace(quote(host, safe=""), quote(str(place), safe=""))
    port = split.port or (_PG_PORT if split.scheme.startswith("postgres") else 4222)
    proxy = Proxy((split.hostname or "127.0.0.1", port))
    listening = await proxy.listen()
    user = f"{split.netloc.rpartition('@')[0]}@" if "@" in split.netloc else ""
    return proxy, split._replace(netloc=f"{user}127.0.0.1:{listening}").geturl()
