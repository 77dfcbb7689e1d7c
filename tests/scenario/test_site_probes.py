"""A machine whose probe fails leaves matching with a reason, and comes back by itself."""

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool

REPOSITORY = "sw.example.org"


@pytest.fixture(scope="module")
def mount() -> Iterator[Path]:
    """A stand-in for /cvmfs that the accounts of slots can reach."""
    directory = Path(tempfile.mkdtemp(prefix="kettle-cvmfs-"))
    directory.chmod(0o755)
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


@pytest.fixture(scope="module")
def configuration(mount: Path) -> dict[str, Any]:
    hanging = mount / "hang.sh"
    hanging.write_text("#!/bin/sh\nsleep 1000000\n")
    hanging.chmod(0o755)
    probes: list[dict[str, Any]] = [
        {
            "kind": "cvmfs", "repository": REPOSITORY, "mount": str(mount), "file": "known",
            "required": True, "period": 1.0,
        },
        {"kind": "program", "name": "fan", "command": [str(hanging)], "timeout": 0.5, "period": 1.0},
    ]  # fmt: skip
    return {"settings": {"startd": {"probes": probes}}}


async def slot(pool: ThrowawayPool, **wanted: object) -> dict[str, Any]:
    """The slot's ad when it says that."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            ads = await pool.client.ads("Machine")
            for ad in ads:
                if all(ad.get(name) == value for name, value in wanted.items()):
                    return dict(ad)
            await asyncio.sleep(0.1)


async def test_a_repository_that_goes_takes_its_machine_along(
    pool: ThrowawayPool, mount: Path, tmp_path: Path
) -> None:
    """
    `kettle why` and `kettle status` say what is missing; the job starts when it is there, without anybody's doing.
    """
    ad = await slot(pool, HasCVMFS=False, ProbesFailed=await _failed(pool))
    assert f"CVMFS repository {REPOSITORY}" in ad["Trouble"]
    text = "executable = /bin/true\ntransfer_executable = false\nrequirements = HasCVMFS =!= error\nqueue\n"
    cluster = (await pool.client.submit(text, cwd=tmp_path)).cluster
    out = ""
    async with asyncio.timeout(PATIENCE_S):
        while "cannot be read: No such file or directory" not in out:
            _, out, _ = await pool.kettle("why", f"{cluster}.0")
    assert f"a probe of the machine fails: CVMFS repository {REPOSITORY}" in " ".join(out.split())
    _, _, said = await pool.kettle("status")
    assert f"takes no jobs: a probe of the machine fails: CVMFS repository {REPOSITORY}" in " ".join(
        said.split()
    )

    (mount / REPOSITORY).mkdir()
    (mount / REPOSITORY / "known").write_text("x")
    async with asyncio.timeout(PATIENCE_S):
        assert (await pool.kettle("wait", f"{cluster}"))[0] == 0
    ad = await slot(pool, HasCVMFS=True)
    assert (REPOSITORY, True) == (ad["CVMFSRepositories"], ad["HAS_CVMFS_sw_example_org"])
    assert ad["CVMFS_sw_example_org_LastChecked"] > 0
    assert "Trouble" not in ad


async def _failed(pool: ThrowawayPool) -> str:
    """
    What the slot says of its probes when one of them was ended because it hangs, and nothing else hangs by that.
    """
    async with asyncio.timeout(PATIENCE_S):
        while True:
            for ad in await pool.client.ads("Machine"):
                said = str(ad.get("ProbesFailed", ""))
                if "fan: it did not end within 0.5 s" in said and REPOSITORY in said:
                    return said
            await asyncio.sleep(0.1)
