"""
Two pools with servers of their own, and jobs that find their place in the other one.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from kettle.client import select
from kettle.pool.personal import Tables
from kettle.testing.pool import ThrowawayPool, throwaway_pool

WITHIN_S = 60.0
VISITOR = "schedd@home.example"

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host(tmp_path_factory: pytest.TempPathFactory, template: Path) -> AsyncIterator[ThrowawayPool]:
    """
    The pool that is visited.
    """
    settings: Tables = {"master": {"flock_from": [VISITOR]}}
    directory = tmp_path_factory.mktemp("host")
    async with throwaway_pool(directory, cpus=2, template=template, settings=settings) as running:
        yield running
    assert [] == running.left


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def home(
    tmp_path_factory: pytest.TempPathFactory, template: Path, host: ThrowawayPool
) -> AsyncIterator[ThrowawayPool]:
    """
    The pool whose schedd visits it: its own machine takes no jobs.
    """
    settings: Tables = {
        "schedd": {"flock_to": ["there"], "flock_patience": 0.5},
        "startd": {"start": "TARGET.StaysAtHome =?= true"},
    }
    directory = tmp_path_factory.mktemp("home")
    async with throwaway_pool(directory, cpus=2, template=template, settings=settings) as running:
        await introduced(running, host)
        yield running
    assert [] == running.left


async def introduced(home: ThrowawayPool, host: ThrowawayPool, name: str = "there") -> None:
    """
    The one's schedd has the other's pass.
    """
    status, made, err = await host.kettle("flock", "pass", VISITOR)
    assert 0 == status, err
    file = home.home.parent / f"{name}.pass"
    file.write_text(made)
    status, _, err = await home.kettle("flock", "use", str(file), "--as", name)
    assert 0 == status, err


async def test_a_job_runs_in_the_other_pool_and_its_results_come_home(
    home: ThrowawayPool, host: ThrowawayPool, tmp_path: Path
) -> None:
    """
    Nobody at home takes it; its input goes there, its output comes back, and its ad and its log say where it ran.
    """
    (tmp_path / "words").write_text("b\na\n" * 5000)
    (tmp_path / "sorting.sh").write_text(
        "#!/bin/sh\nsort words >sorted\nhead -c 3000000 /dev/zero >large\ncat\n"
    )
    (tmp_path / "sorting.sh").chmod(0o755)
    (tmp_path / "in.txt").write_text("from stdin\n")
    submitted = await home.client.submit(
        "executable = sorting.sh\ntransfer_input_files = words\ninput = in.txt\noutput = out\nlog = log\n"
        "queue\n",
        cwd=tmp_path,
    )
    async with asyncio.timeout(WITHIN_S):
        await home.client.wait(select(submitted.cluster))
    assert "from stdin\n" == (tmp_path / "out").read_text()
    assert "a\n" * 5000 + "b\n" * 5000 == (tmp_path / "sorted").read_text()
    assert 3_000_000 == (tmp_path / "large").stat().st_size
