"""
The demonstration of an analysis facility: a Dask cluster of jobs makes a histogram of columns, which is the one that this process makes.
"""

import asyncio
import shutil
import tempfile
import time
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, cast

import msgspec
import numpy as np
import numpy.typing as npt

from kettle import pool
from kettle.client import Client, select
from kettle.runtime import make_lifeline
from kettle.terminal.quantities import counted, duration
from kettle_services.cli.demo import aside, audited, say, title
from kettle_services.cli.demo_machine import MACHINE, joined_machine
from kettle_services.cli.demo_network import ClosedNetwork
from kettle_services.cli.errors import CommandError
from kettle_services.cli.output.screen import Screen
from kettle_wire.codes import JobStatus

WORKERS: Final = 2
DAEMONS: Final = (
    "collector", "negotiator", "schedd", "shadow", "startd", "accounting", "iam", "sessions", "gateway",
)  # fmt: skip
ROWS: Final = 1_000_000
"""Of the columns of one part: pairs of particles."""
BINS: Final = 60
HIGHEST: Final = 120.0
"""GeV, the end of the last bin."""
_WITHIN_S: Final = 120.0
_BAR: Final = 50
_OPEN: Final = frozenset({JobStatus.IDLE, JobStatus.RUNNING, JobStatus.HELD})

Counts = npt.NDArray[np.int64]


class FacilityFigures(msgspec.Struct, kw_only=True):
    """What the demonstration showed; seconds."""

    parts: int
    rows: int = 0
    started: float = 0.0
    """From the wish for a cluster to the last of its workers."""
    took: float = 0.0
    """The analysis."""
    equal: bool = False
    """The histogram is the one that was made without any cluster."""
    behind: int = -1
    """Workers on a machine that nothing reaches; -1: there is no such machine."""
    left: int = -1
    """Jobs in the end."""
    clean: bool = False

    @property
    def right(self) -> bool:
        """Whether everything is as it must be."""
        return self.equal and self.left == 0 and self.clean and self.behind != 0


def columns(part: int) -> dict[str, npt.NDArray[np.float64]]:
    """Synthetic columns of a part: pairs of muons."""
    draw = np.random.default_rng(part)
    found: dict[str, npt.NDArray[np.float64]] = {}
    for which in ("first", "second"):
        found[f"{which}_pt"] = 5.0 + draw.exponential(25.0, ROWS)
        found[f"{which}_eta"] = draw.normal(0.0, 1.2, ROWS)
        found[f"{which}_phi"] = draw.uniform(-np.pi, np.pi, ROWS)
    return found


def histogram(part: int) -> Counts:
    """How many pairs of a part have which invariant mass; a worker computes it."""
    of = columns(part)
    angle = np.cosh(of["first_eta"] - of["second_eta"]) - np.cos(of["first_phi"] - of["second_phi"])
    mass = np.sqrt(2.0 * of["first_pt"] * of["second_pt"] * angle)
    return np.histogram(mass, BINS, (0.0, HIGHEST))[0].astype(np.int64)


def run(screen: Screen, *, jobs: int, keep: bool) -> int:
    """
    Show it with so many parts; the exit status is 0 if the histogram is right, no job is left, and the log is clean.
    """
    if not 1 <= jobs <= 1000:
        raise CommandError(
            "the demonstration takes between 1 and 1000 parts; try kettle demo facility --jobs 20"
        )
    if find_spec("distributed") is None:
        raise CommandError(
            "Dask is not installed here: pip install 'kettle[dask]', then kettle demo facility"
        )
    place = Path(tempfile.mkdtemp(prefix="kettle-demo-"))
    found = FacilityFigures(parts=jobs, rows=jobs * ROWS)
    lifeline = make_lifeline()  # if this program is killed, so is the pool
    network = _network(screen)
    slots = WORKERS if network is not None else WORKERS + 2
    try:
        title(screen, "A pool with a service for sessions and a gateway")
        pool.up(
            place / "pool",
            settings={
                "master": {"throwaway": True, "daemon_list": list(DAEMONS)},
                "gateway": {"rest": True},
                "startd": {"num_cpus": slots, "job_account": "own"},
            },
            progress=lambda text: aside(screen, text),
            lifeline_fd=lifeline.read_fd,
        )
        asyncio.run(_show(screen, place, network, found, lifeline.read_fd))
    finally:
        pool.down(place / "pool", purge=not keep)
        if network is not None:
            network.close()
        lifeline.close()
        if keep:
            screen.note(f"Left for a look: {place}")
        else:
            shutil.rmtree(place, ignore_errors=True)
    if screen.as_json:
        screen.json(found)
    return 0 if found.right else 1


def _network(screen: Screen) -> ClosedNetwork | None:
    """A network that nothing reaches, if this process may make one."""
    try:
        return ClosedNetwork()
    except OSError as error:
        screen.note(f"All machines are in one network: another one cannot be made ({error.strerror}).")
        return None


async def _show(
    screen: Screen, place: Path, network: ClosedNetwork | None, found: FacilityFigures, lifeline_fd: int
) -> None:
    home = place / "pool"
    async with AsyncExitStack() as stack:
        if network is not None:
            title(screen, "A machine in a network of its own, into which nothing leads")
            joined = joined_machine(home, place / "machine", network, lifeline_fd)
            await stack.enter_async_context(joined)
            say(screen, f"{MACHINE} has joined: it connects to bus, gateway and iam, and nothing to it.")
            found.behind = 0
        await _show_cluster(screen, home, found)


async def _show_cluster(screen: Screen, home: Path, found: FacilityFigures) -> None:
    title(screen, f"A Dask cluster whose scheduler and {WORKERS} workers are jobs")
    total = await _analysis(screen, home, found)
    expected = sum(histogram(part) for part in range(found.parts))
    found.equal = bool(np.array_equal(total, expected))
    title(screen, "The invariant mass of pairs, GeV")
    _draw(screen, total)
    same = screen.paint("the same", "good") if found.equal else screen.paint("NOT the same", "bad")
    say(screen, f"It is {same} as the one that was made without a cluster.")
    async with Client.connect(home=home) as client:
        found.left = await _left(client)
    found.clean, frames = await audited(home)
    said = screen.paint("clean", "good") if found.clean else screen.paint("NOT CLEAN", "bad")
    say(
        screen,
        f"{counted(found.left, 'job')} left. The log has {counted(frames, 'frame')}, and its audit is {said}.",
    )
    say(
        screen,
        "Servers of a JupyterHub and files through XRootD are not in it: see the how-to pages about them.",
    )


async def _analysis(screen: Screen, home: Path, found: FacilityFigures) -> Counts:
    """What the cluster makes of all parts."""
    import distributed

    from kettle.dask import KettleCluster
    from kettle.dask.pool_sessions import sessions_of_pool

    began = time.monotonic()
    # Dask has no types.
    client_of, cluster_of = cast("Any", distributed.Client), cast("Any", KettleCluster)
    cluster = cluster_of(
        WORKERS,
        cores=1,
        memory="512 MB",
        connect=lambda: sessions_of_pool(home=home),
        asynchronous=True,
        quiet=True,
    )
    async with cluster, client_of(cluster, asynchronous=True) as dask:
        await dask.wait_for_workers(WORKERS, timeout=_WITHIN_S)
        found.started = time.monotonic() - began
        say(screen, f"It is there after {duration(found.started)}; its dashboard: {cluster.dashboard_link}")
        began = time.monotonic()
        counts = dask.map(histogram, range(found.parts))
        total: Counts = await dask.submit(_total, counts)
        found.took = time.monotonic() - began
        if found.behind >= 0:
            found.behind = await _behind(home, cluster.name)
            say(screen, f"{counted(found.behind, 'worker')} of it is behind NAT.")
    rate = found.rows / found.took
    say(
        screen,
        f"{found.rows:,} pairs in {found.parts} parts took {duration(found.took)}: {rate / 1e6:.1f} million a second.",
    )
    return total


async def _behind(home: Path, session: str) -> int:
    """How many workers of a session are on the machine that nothing reaches."""
    async with Client.connect(home=home) as client:
        members = (await client.sessions.show(session)).members
    return sum(each.role == "worker" and each.machine.endswith(MACHINE) for each in members)


def _total(counts: list[Counts]) -> Counts:
    total: Counts = np.array(counts, np.int64).sum(axis=0, dtype=np.int64)
    return total


def _draw(screen: Screen, total: Counts) -> None:
    bars = total.reshape(-1, 4).sum(axis=1)
    high = max(1, int(bars.max()))
    width = HIGHEST / len(bars)
    for number, count in enumerate(bars):
        say(screen, f"  {number * width:5.0f}  {'#' * int(_BAR * count / high)}")


async def _left(client: Client) -> int:
    """How many jobs are in the queue when those of the cluster have had time to go."""
    deadline = time.monotonic() + _WITHIN_S
    while True:
        ads = await client.jobs(select(), projection=["JobStatus"])
        left = sum(ad["JobStatus"] in _OPEN for ad in ads)
        if not left or time.monotonic() > deadline:
            return left
        await asyncio.sleep(0.1)
