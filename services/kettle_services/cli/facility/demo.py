"""
The demonstration of an analysis facility: from the login to a histogram.

Somebody signs in at an issuer and gets a notebook from JupyterHub, which is a job of the pool; the notebook makes a Dask cluster of jobs,
one of them on a machine that nothing reaches, which reads columns by XRootD through the cache of the site; and the histogram has to be
the one that this process makes.  What is not installed is left out, and said.
"""

import asyncio
import time
from contextlib import AsyncExitStack, closing, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, cast

import msgspec
import numpy as np

from kettle.client import Client, select
from kettle.embedded.ports import free_ports
from kettle.terminal.quantities import counted, duration
from kettle_services.cli.demonstration import audited, demonstration_pool, say, title
from kettle_services.cli.errors import CommandError
from kettle_services.cli.facility.analysis import BINS, HIGHEST, ROWS, Counts, histogram, total
from kettle_services.cli.facility.closed_network import ClosedNetwork
from kettle_services.cli.facility.figures import FacilityFigures
from kettle_services.cli.facility.files import SiteFiles
from kettle_services.cli.facility.hub import HubWishes, running_hub
from kettle_services.cli.facility.issuer import issuing
from kettle_services.cli.facility.machine import IS_WORKER, MACHINE, joined_machine
from kettle_services.cli.facility.notebook import NotebookServer, cells
from kettle_services.cli.facility.parts import missing_for_files, missing_for_hub, missing_for_network
from kettle_services.cli.output.screen import Screen
from kettle_wire.codes import JobStatus

WORKERS: Final = 2
DAEMONS: Final = (
    "collector", "negotiator", "schedd", "shadow", "startd", "accounting", "iam", "sessions", "gateway",
)  # fmt: skip
PERSON: Final = "grace"
AUDIENCE: Final = "https://pool.example"
"""What the issuer's tokens for the pool are for."""
_RULES: Final = """\
[[rules]]
when.issuer = "{issuer}"
when.subject = '/^([a-z]+)$/'
owner = '\\1'
"""
_WITHIN_S: Final = 120.0
_BAR: Final = 50
_OPEN: Final = frozenset({JobStatus.IDLE, JobStatus.RUNNING, JobStatus.HELD})


class FacilityParts(msgspec.Struct, frozen=True, kw_only=True):
    """Of which parts the facility is made."""

    place: Path
    """The directory of all their files."""
    network: ClosedNetwork | None
    files: SiteFiles | None
    hub: int
    """The port at which servers reach JupyterHub; 0: there is none."""
    issuer: int
    """Its port."""

    @property
    def home(self) -> Path:
        """The directory of the pool."""
        return self.place / "pool"

    @property
    def slots(self) -> int:
        """
        How many jobs the machine of the pool has to have room for: a scheduler, a worker that is not elsewhere, a server.
        """
        return 1 + WORKERS - (self.network is not None) + bool(self.hub)


def run(screen: Screen, *, jobs: int, keep: bool, whole: bool = False) -> int:
    """
    Show it with so many parts of columns; the exit status is 0 if the histogram is right, no job is left, and the log is clean.

    `whole`: it is refused if something of it is missing here.
    """
    if not 1 <= jobs <= 1000:
        raise CommandError(
            "the demonstration takes between 1 and 1000 parts; try kettle demo facility --jobs 20"
        )
    if find_spec("distributed") is None:
        raise CommandError(
            "Dask is not installed here: pip install 'kettle[dask]', then kettle demo facility"
        )
    hub, files = missing_for_hub(), missing_for_files()
    network, unreached = _network()
    with nullcontext() if network is None else closing(network):
        missing = [each for each in (hub, files, unreached) if each]
        if whole and missing:
            raise CommandError(f"the facility would not be whole: {'; '.join(missing)}")
        found = FacilityFigures(parts=jobs, rows=jobs * ROWS, missing=missing)
        with demonstration_pool(screen, keep=keep) as shown:
            for each in missing:
                screen.note(f"This is left out: {each}.")
            parts = _parts(shown.place, network, files=not files, hub=not hub)
            title(screen, "A pool with a service for sessions and a gateway")
            shown.up(screen, _settings(parts))
            asyncio.run(_show(screen, parts, found, shown.lifeline_fd))
    if screen.as_json:
        screen.json(found)
    return 0 if found.right else 1


def _network() -> tuple[ClosedNetwork | None, str]:
    """A network that nothing reaches, or why there is none."""
    if missing := missing_for_network():
        return None, missing
    try:
        return ClosedNetwork(), ""
    except OSError as error:
        return None, f"no machine behind NAT: a network cannot be made ({error.strerror})"


def _parts(place: Path, network: ClosedNetwork | None, *, files: bool, hub: bool) -> FacilityParts:
    """What is to be had of the facility, with ports of its own."""
    place.chmod(0o711)  # the servers of files are of another account
    origin, cache, hub_port, issuer = free_ports(4)
    return FacilityParts(
        place=place,
        network=network,
        files=SiteFiles(place / "files", origin=origin, cache=cache) if files else None,
        hub=hub_port if hub else 0,
        issuer=issuer,
    )


def _settings(parts: FacilityParts) -> dict[str, dict[str, Any]]:
    """Of the pool, which lets people of the issuer in."""
    startd: dict[str, Any] = {"num_cpus": parts.slots, "job_account": "own"}
    if parts.files is not None:
        startd["data"] = [parts.files.rule]
    tables: dict[str, dict[str, Any]] = {
        "master": {"daemon_list": list(DAEMONS)},
        "gateway": {"rest": True},
        "startd": startd,
    }
    if parts.hub:
        issuer = f"http://127.0.0.1:{parts.issuer}"
        rules = parts.place / "rules.toml"
        rules.write_text(_RULES.format(issuer=issuer))
        tables["iam"] = {"issuers": {issuer: [AUDIENCE]}}
        tables["gateway"]["issuers"] = {issuer: [AUDIENCE]}
        tables["authorization"] = {"domain": "pool.example", "rules": str(rules)}
    return tables


async def _show(screen: Screen, parts: FacilityParts, found: FacilityFigures, lifeline_fd: int) -> None:
    async with AsyncExitStack() as stack:
        ports = [parts.hub] if parts.hub else []
        settings: dict[str, str] = {}
        if parts.files is not None:
            title(screen, "Files at an XRootD server, and the cache of the site before it")
            await stack.enter_async_context(parts.files.served(found.parts))
            say(screen, f"{counted(found.parts, 'file')} of {ROWS:,} pairs each; {parts.files.rule}")
            ports.append(parts.files.cache)
            settings["KETTLE_STARTD_DATA"] = msgspec.json.encode([parts.files.rule]).decode()
        if parts.network is not None:
            title(screen, "A machine in a network of its own, into which nothing leads")
            joined = joined_machine(
                parts.home,
                parts.place / "machine",
                parts.network,
                lifeline_fd,
                ports=ports,
                settings=settings,
            )
            await stack.enter_async_context(joined)
            led = "bus, gateway and iam" if parts.files is None else "bus, gateway, iam and cache"
            say(screen, f"{MACHINE} has joined: it connects to {led}, and nothing to it.")
        counts = await (_by_notebook if parts.hub else _from_here)(screen, parts, found)
        await _compare(screen, parts, counts, found)


async def _by_notebook(screen: Screen, parts: FacilityParts, found: FacilityFigures) -> Counts:
    """What a notebook makes of all parts, whose server is a job of somebody who has signed in."""
    title(screen, "JupyterHub, whose people sign in at an issuer and whose servers are jobs")
    ports = {name: int((parts.home / name / "port").read_text()) for name in ("iam", "gateway")}
    environment = {
        "KETTLE_POOL_URL": f"http://127.0.0.1:{ports['iam']}",
        "KETTLE_HOME": str(parts.place / "person"),
    }
    async with AsyncExitStack() as stack:
        issuer = await stack.enter_async_context(issuing(parts.issuer, PERSON))
        wishes = HubWishes(
            port=parts.hub,
            issuer=issuer.url,
            audience=AUDIENCE,
            gateway=f"http://127.0.0.1:{ports['gateway']}",
            environment=environment,
        )
        hub = await stack.enter_async_context(running_hub(parts.place / "hub", wishes))
        await hub.sign_in()
        began = time.monotonic()
        address = await hub.start_server(PERSON)
        found.login, found.server = True, time.monotonic() - began
        say(screen, f"{PERSON} has signed in, and a server after {duration(found.server)}: {address}")
        token = await hub.token_for(PERSON)
        server = await stack.enter_async_context(NotebookServer.used(address, token))
        counts = await _cells_run(screen, parts, found, server, began)
        await hub.stop_server(PERSON)
        return counts


async def _cells_run(
    screen: Screen, parts: FacilityParts, found: FacilityFigures, server: NotebookServer, wished: float
) -> Counts:
    """`wished`: when the server was wished for, by the monotonic clock."""
    places: list[int] | list[str] = list(range(found.parts))
    if parts.files is not None:
        places = parts.files.urls(found.parts)
    notebook = cells(places, files=parts.files is not None, workers=WORKERS, bins=BINS, highest=HIGHEST)
    title(screen, f"A notebook makes a Dask cluster whose scheduler and {WORKERS} workers are jobs")
    await server.save(notebook)
    kernel = await server.kernel()
    await server.run(kernel, notebook.begin)
    found.kernel = time.monotonic() - wished
    began = time.monotonic()
    dashboard = await server.run(kernel, notebook.cluster)
    found.started = time.monotonic() - began
    say(screen, f"It is there after {duration(found.started)}; its dashboard: {dashboard.strip()}")
    began = time.monotonic()
    counts = np.array(msgspec.json.decode(await server.run(kernel, notebook.analysis)), np.int64)
    found.took = time.monotonic() - began
    await _seen(screen, parts, found)
    await server.run(kernel, notebook.end)
    return counts


async def _from_here(screen: Screen, parts: FacilityParts, found: FacilityFigures) -> Counts:
    """What a cluster of this process makes of all parts."""
    import distributed

    from kettle.dask import KettleCluster
    from kettle.dask.pool_sessions import sessions_of_pool

    title(screen, f"A Dask cluster whose scheduler and {WORKERS} workers are jobs")
    began = time.monotonic()
    # Dask has no types.
    client_of, cluster_of = cast("Any", distributed.Client), cast("Any", KettleCluster)
    cluster = cluster_of(
        WORKERS,
        cores=1,
        memory="512 MB",
        connect=lambda: sessions_of_pool(home=parts.home),
        asynchronous=True,
        quiet=True,
    )
    async with cluster, client_of(cluster, asynchronous=True) as dask:
        await dask.wait_for_workers(WORKERS, timeout=_WITHIN_S)
        found.started = time.monotonic() - began
        say(screen, f"It is there after {duration(found.started)}; its dashboard: {cluster.dashboard_link}")
        began = time.monotonic()
        counts: Counts = await dask.submit(total, dask.map(histogram, range(found.parts)))
        found.took = time.monotonic() - began
        await _seen(screen, parts, found)
    return counts


async def _seen(screen: Screen, parts: FacilityParts, found: FacilityFigures) -> None:
    """What the analysis has used, and how fast it was."""
    if parts.network is not None:
        found.behind = await _behind(parts.home)
        say(screen, f"{counted(found.behind, 'worker')} of it is behind NAT.")
    if parts.files is not None and parts.hub:
        found.cached = parts.files.cached()
        say(screen, f"The cache has got {counted(found.cached, 'file')} from the origin for the workers.")
    rate = found.rows / found.took / 1e6
    took = duration(found.took)
    say(screen, f"{found.rows:,} pairs in {found.parts} parts took {took}: {rate:.1f} million a second.")


async def _behind(home: Path) -> int:
    """How many workers are on the machine that nothing reaches."""
    async with Client.connect(home=home) as client:
        ads = await client.jobs(select(constraint=IS_WORKER), projection=["RemoteHost"])
    return sum(str(ad.get("RemoteHost", "")).endswith(MACHINE) for ad in ads)


async def _compare(screen: Screen, parts: FacilityParts, counts: Counts, found: FacilityFigures) -> None:
    expected = total([histogram(part) for part in range(found.parts)])
    found.equal = bool(np.array_equal(counts, expected))
    title(screen, "The invariant mass of pairs, GeV")
    _draw(screen, counts)
    same = screen.paint("the same", "good") if found.equal else screen.paint("NOT the same", "bad")
    say(screen, f"It is {same} as the one that was made without a cluster.")
    async with Client.connect(home=parts.home) as client:
        found.left = await _left(client)
    found.clean, frames = await audited(parts.home)
    said = screen.paint("clean", "good") if found.clean else screen.paint("NOT CLEAN", "bad")
    left = counted(found.left, "job")
    say(screen, f"{left} left. The log has {counted(frames, 'frame')}, and its audit is {said}.")


def _draw(screen: Screen, counts: Counts) -> None:
    bars = counts.reshape(-1, 4).sum(axis=1)
    high = max(1, int(bars.max()))
    width = HIGHEST / len(bars)
    for number, count in enumerate(bars):
        say(screen, f"  {number * width:5.0f}  {'#' * int(_BAR * count / high)}")


async def _left(client: Client) -> int:
    """How many jobs are in the queue when those of the facility have had time to go."""
    deadline = time.monotonic() + _WITHIN_S
    while True:
        ads = await client.jobs(select(), projection=["JobStatus"])
        left = sum(ad["JobStatus"] in _OPEN for ad in ads)
        if not left or time.monotonic() > deadline:
            return left
        await asyncio.sleep(0.1)
