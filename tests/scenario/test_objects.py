"""
One large input of many jobs, on two machines of a real pool: how often it moves, and what its copies are worth.
"""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from kettle.bus.nats import NatsBus
from kettle.client import select
from kettle.pool.home import Home
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.selection import servers_are_ours
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_wire.ads import Ad
from kettle_wire.identity import daemon
from kettle_wire.subjects import Subjects

WITHIN_S = 180.0
MIB = 1 << 20
SIZE = 10 * MIB
JOBS = 100
PIECES = 20
"""Half a mebibyte each."""
MACHINES = ("one", "two")

USER = """\
#!/bin/sh
# user SIZE [SUM]: the input is whole, whatever others did with theirs; then spoil it
[ "$(stat -c %s large)" = "$1" ] || exit 1
[ -z "$2" ] || [ "$(sha256sum <large)" = "$2  -" ] || exit 2
echo spoilt >>large
"""

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(not servers_are_ours(), reason="it looks into the server as the pool's shadow"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(tmp_path_factory: pytest.TempPathFactory, template: Path) -> AsyncIterator[ThrowawayPool]:
    directory = tmp_path_factory.mktemp("objects")
    home, second = directory / "pool", directory / "second"
    second.mkdir(mode=0o700)
    services = ("collector", "negotiator", "schedd", "shadow", "accounting", "gateway")
    apart = {
        "KETTLE_HOME": str(second),
        "KETTLE_CONFIG": str(home / "kettle.toml"),
        "KETTLE_STARTD_SLOT_UID_BASE": "1910000000",
    }
    settings: dict[str, dict[str, Any]] = {
        "master": {
            "daemon_list": [*services, *(f"startd.{name}" for name in MACHINES)],
            "environment": {"startd.two": apart},
        },
        "startd": {"local_jobs": False},
    }
    async with throwaway_pool(directory, cpus=2, template=template, settings=settings, home=home) as running:
        yield running


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """An input that no other test has."""
    path = tmp_path / "large"
    path.write_bytes(os.urandom(SIZE))
    script = tmp_path / "user.sh"
    script.write_text(USER)
    script.chmod(0o755)
    return path


async def run(pool: ThrowawayPool, large: Path, jobs: int, *machines: str, checked: bool = False) -> None:
    """So many jobs on each of these machines, all with the same input; returns when they are done."""
    total = hashlib.sha256(large.read_bytes()).hexdigest() if checked else ""
    description = f"""\
executable = user.sh
arguments = {SIZE} {total}
transfer_input_files = large
transfer_output_files = ""
request_memory = 16
request_disk = 40960
requirements = TARGET.Machine == "$(name)"
queue {jobs} name in ({" ".join(machines)})
"""
    submitted = await pool.client.submit(description, cwd=large.parent)
    async with asyncio.timeout(WITHIN_S):
        progress = await pool.client.wait(select(submitted.cluster), through_hold=False)
    assert not progress.bad(), progress


async def counted(pool: ThrowawayPool, inputs: int, *machines: str) -> dict[str, Ad]:
    """
    What the machines say of their inputs, as soon as these have told of so many together since they were started.
    """
    async with asyncio.timeout(WITHIN_S):
        while True:
            ads = {str(ad["Name"]): ad for ad in await pool.client.ads("StartDaemon")}
            if set(machines) <= ads.keys() and inputs == sum(used(ads[name]) for name in machines):
                return ads
            await asyncio.sleep(0.1)


def used(ad: Ad) -> int:
    """For how many jobs a machine has had an input: it was fetched, or was there."""
    return sum(int(str(ad[name])) for name in ("InputFilesFetched", "InputCacheHits"))


def more(after: dict[str, Ad], before: dict[str, Ad], name: str) -> list[int]:
    """What an attribute of both machines grew by."""
    values = [(after[machine][name], before[machine][name]) for machine in MACHINES]
    return [new - old for new, old in values if isinstance(new, int) and isinstance(old, int)]


async def pieces(pool: ThrowawayPool) -> int:
    """How many pieces of files were ever put into the object store."""
    subjects = Subjects(pool.state.pool)
    async with NatsBus.connect(
        pool.state.nats_url,
        subjects=subjects,
        identity=daemon("shadow"),
        credentials=str(Home(pool.home).credential("shadow")),
        patience=PATIENCE_S,
    ) as bus:
        return await bus.last_sequence(subjects.object_stream) or 0


async def test_an_input_of_many_jobs_moves_once_to_each_machine(pool: ThrowawayPool, large: Path) -> None:
    """
    100 jobs, asking side by side on two machines: one reads it from the shadow, the other from the object store, into
    which it was put once.
    """
    before, stored = await counted(pool, 0, *MACHINES), await pieces(pool)
    await run(pool, large, JOBS // 2, *MACHINES)
    after = await counted(pool, JOBS, *MACHINES)

    assert [SIZE, SIZE] == more(after, before, "InputBytesFetched")
    assert [1, 1] == more(after, before, "InputFilesFetched")
    assert JOBS - 2 == sum(more(after, before, "InputCacheHits"))
    assert SIZE == sum(more(after, before, "InputBytesFromStore"))
    assert PIECES == await pieces(pool) - stored


async def test_a_restarted_startd_has_it_and_trusts_no_byte_of_it(pool: ThrowawayPool, large: Path) -> None:
    """What lies in the cache outlives the startd; what somebody has changed there is fetched again."""
    await run(pool, large, 2, "one", checked=True)
    await pool.restarted("startd.one", after=pool.kill("startd.one"))
    await run(pool, large, 1, "one", checked=True)
    kept = (await counted(pool, 1, "one"))["one"]
    copy = pool.home / "startd" / "cache" / hashlib.sha256(large.read_bytes()).hexdigest()
    with copy.open("r+b") as file:
        file.write(b"spoilt")
    await run(pool, large, 1, "one", checked=True)
    again = (await counted(pool, 2, "one"))["one"]

    assert (0, 0, 1) == tuple(
        kept[name] for name in ("InputFilesFetched", "InputBytesFetched", "InputCacheHits")
    )
    assert (1, SIZE) == tuple(again[name] for name in ("InputFilesFetched", "InputBytesFetched"))
