"""A machine with GPUs, one static slot and one partitionable slot."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from kettle.client import Client, select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_wire.ads import Ad
from kettle_wire.jobs import JobId

from .evidence import Evidence

OLD, NEW = "GPU-1a2b3c4d-0000-1111-2222-333344445555", "GPU-9f8e7d6c-0000-1111-2222-333344445555"

# What the real program prints for this query, of a machine with two cards.
NVIDIA_SMI = f"""#!/bin/sh
case "$*" in
*--query-gpu=uuid,name,memory.total,driver_version,pci.bus_id,compute_cap*--format=csv,noheader,nounits*)
    echo "{OLD}, Tesla V100-PCIE-32GB, 32768, 535.161.08, 00000000:3B:00.0, 7.0"
    echo "{NEW}, NVIDIA A100-SXM4-40GB, 40960, 535.161.08, 00000000:AF:00.0, 8.0" ;;
*) echo 'Invalid combination of input arguments. Please run nvidia-smi -h for help.'; exit 6 ;;
esac
"""

SHOW = """#!/bin/sh
for name in _CONDOR_SLOT _CONDOR_AssignedGPUs CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES GPU_DEVICE_ORDINAL; do
    eval "echo $name=\\$$name"
done
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(tmp_path_factory: pytest.TempPathFactory, template: Path) -> AsyncIterator[ThrowawayPool]:
    directory = tmp_path_factory.mktemp("slots")
    programs = directory / "bin"
    programs.mkdir()
    (programs / "nvidia-smi").write_text(NVIDIA_SMI)
    (programs / "nvidia-smi").chmod(0o755)
    async with throwaway_pool(
        directory,
        cpus=4,
        settings={
            "startd": {
                "slot_types": [
                    {"cpus": 1, "memory": "25%", "disk": "1/4", "resources": {"GPUs": 1}},
                    {"partitionable": True},
                ],
                "start": "SlotTypeID == 2 || TARGET.WantsStatic =?= true",
            },
        },
        environ={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
        template=template,
    ) as running:
        yield running
    assert [] == running.left


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def ended(client: Client, cluster: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        progress = await client.wait(select(cluster))
    assert {"completed"} == {state.status for state in progress.jobs.values()}


def environment(path: Path) -> dict[str, str]:
    pairs = (line.partition("=") for line in path.read_text().splitlines())
    return {name: value for name, _, value in pairs}


async def slots(client: Client) -> dict[str, Ad]:
    return {str(ad["Name"]).partition("@")[0]: ad for ad in await client.ads("Machine")}


def script(directory: Path, text: str) -> None:
    path = directory / "job.sh"
    path.write_text(text)
    path.chmod(0o755)


async def test_the_machine_is_divided_as_it_was_described(pool: ThrowawayPool) -> None:
    """Cores, memory and devices of each slot; a device belongs to one slot only, and tells its properties."""
    async with asyncio.timeout(PATIENCE_S):
        while len(ads := await slots(pool.client)) < 2:  # each has an ad of its own
            await asyncio.sleep(0.05)

    assert ["slot1", "slot2"] == sorted(ads)
    static, rest = ads["slot1"], ads["slot2"]
    assert ("Static", 1, 2048, 1, OLD, 1) == tuple(
        static[name] for name in ("SlotType", "Cpus", "Memory", "GPUs", "AssignedGPUs", "SlotWeight")
    )
    assert ("Partitionable", 3, 6144, 1, NEW, 3) == tuple(
        rest[name] for name in ("SlotType", "Cpus", "Memory", "GPUs", "AssignedGPUs", "SlotWeight")
    )
    assert (8.0, "NVIDIA A100-SXM4-40GB", 40960) == tuple(
        rest[f"GPUs_{name}"] for name in ("Capability", "DeviceName", "GlobalMemoryMb")
    )


async def test_jobs_get_devices_of_their_own(pool: ThrowawayPool, evidence: Evidence) -> None:
    """
    Two jobs that run at once have different GPUs, one of them the static slot whole, and their environment says which.
    """
    work = evidence.work
    met = evidence.directory
    script(work, f"{SHOW}\n: >{met}/$1\nwhile ! [ -e {met}/0 -a -e {met}/1 ]; do sleep 0.05; done\n")
    submitted = await pool.client.submit(
        "executable = job.sh\narguments = $(Process)\noutput = out.$(Process)\nrequest_gpus = 1\n"
        "+WantsStatic = true\nqueue 2\n",
        cwd=work,
    )

    await ended(pool.client, submitted.cluster)

    found = [environment(work / f"out.{proc}") for proc in range(2)]
    assert {OLD, NEW} == {each["_CONDOR_AssignedGPUs"] for each in found}
    for each in found:
        names = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
        assert [each["_CONDOR_AssignedGPUs"]] * 3 == [each[name] for name in names]
        static = each["_CONDOR_AssignedGPUs"] == OLD
        assert static == (each["_CONDOR_SLOT"] == "slot1")
        assert static != each["_CONDOR_SLOT"].startswith("slot2_")


async def test_a_job_chooses_its_device_and_one_without_sees_none(
    pool: ThrowawayPool, tmp_path: Path
) -> None:
    """`require_gpus` looks at the properties; who asked for no GPU is shown none."""
    script(tmp_path, SHOW)
    common = "executable = job.sh\n+WantsStatic = true\n"
    chosen = await pool.client.submit(
        f"{common}output = old\nrequest_gpus = 1\nrequire_gpus = Capability < 7.5\nqueue\n", cwd=tmp_path
    )
    without = await pool.client.submit("executable = job.sh\noutput = none\nqueue\n", cwd=tmp_path)
    for cluster in (chosen.cluster, without.cluster):
        await ended(pool.client, cluster)

    assert OLD == environment(tmp_path / "old")["CUDA_VISIBLE_DEVICES"]
    none = environment(tmp_path / "none")
    assert ("", "10000", "void") == tuple(
        none[name] for name in ("_CONDOR_AssignedGPUs", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
    )


async def test_a_job_that_asks_for_more_than_there_is_waits(pool: ThrowawayPool, tmp_path: Path) -> None:
    """Three GPUs of no slot: it is told so, and removed it leaves nothing behind."""
    script(tmp_path, SHOW)
    submitted = await pool.client.submit("executable = job.sh\nrequest_gpus = 3\nqueue\n", cwd=tmp_path)
    job = JobId(submitted.cluster, 0)
    async with asyncio.timeout(PATIENCE_S):
        while (rejection := await _refused(pool.client, job)) is None:
            await asyncio.sleep(0.05)

    assert any("GPUs" in clause for clause in rejection)
    await pool.client.remove(select(job))


async def _refused(client: Client, job: JobId) -> list[str] | None:
    verdict = (await client.why(job)).verdict
    if verdict is None or verdict.rejection is None:
        return None
    return [clause.text for clause in verdict.rejection.clauses if clause.refuses == verdict.rejection.slots]


async def test_claims_on_static_slots_and_devices_survive_a_startd(
    pool: ThrowawayPool, evidence: Evidence
) -> None:
    """
    The startd is killed and knows again who has the static slot and which GPU; nobody else gets them meanwhile.
    """
    work, met = evidence.work, evidence.directory
    script(work, f"{SHOW}\n: >{met}/began\nwhile ! [ -e {met}/go ]; do sleep 0.05; done\n")
    submitted = await pool.client.submit(
        "executable = job.sh\noutput = out\nrequest_gpus = 1\nrequire_gpus = Capability < 7.5\n"
        "+WantsStatic = true\nqueue\n",
        cwd=work,
    )
    async with asyncio.timeout(PATIENCE_S):
        while not (met / "began").exists():
            await asyncio.sleep(0.05)
    await pool.restarted("startd", after=pool.kill("startd"))
    async with asyncio.timeout(PATIENCE_S):
        while (ads := await slots(pool.client)).get("slot1", {}).get("State") != "Claimed":
            await asyncio.sleep(0.05)

    assert (OLD, "Static") == (ads["slot1"]["AssignedGPUs"], ads["slot1"]["SlotType"])
    (met / "go").touch()
    await ended(pool.client, submitted.cluster)


async def test_no_core_is_idle_in_a_slot_that_was_carved_for_a_larger_job(
    pool: ThrowawayPool, evidence: Evidence
) -> None:
    """
    After a job with three cores come three with one: they run together, each waits until it has seen the others.
    """
    met = evidence.directory
    script(
        evidence.work,
        f"#!/bin/sh\n: >{met}/$1; shift\nfor other; do while ! [ -e {met}/$other ]; do sleep 0.05; done; done\n",
    )
    job = "executable = job.sh\narguments = {}\nrequest_cpus = {}\nqueue {}\n"
    large = await pool.client.submit(job.format("large go", 3, 1), cwd=evidence.work)
    async with asyncio.timeout(PATIENCE_S):
        while not (met / "large").exists():
            await asyncio.sleep(0.05)
    small = await pool.client.submit(job.format("$(Process) 0 1 2", 1, 3), cwd=evidence.work)
    (met / "go").touch()

    await ended(pool.client, large.cluster)
    await ended(pool.client, small.cluster)
