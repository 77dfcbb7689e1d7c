"""
A short run of the fault harness, always the same one: `make chaos` makes longer ones, each time another.
"""

import os

import pytest

from kettle.testing.chaos import report
from kettle.testing.chaos.harness import run
from kettle.testing.chaos.plan import Plan
from kettle.testing.chaos.schedule import ALONE, KINDS
from kettle.testing.chaos.screen import Silent

LONG = {"disk_full"}
"""A server that is started again after a full disk takes longer than this test has."""
CLOCKS = {"clock:schedd", "clock:startd"}
"""There is time for one of these; a service whose clock can be turned is executed, and others are forked."""
SEED = int(os.environ.get("KETTLE_TEST_CHAOS_SEED", "4"))


@pytest.mark.breaks_servers
async def test_a_broken_pool_keeps_its_promises() -> None:
    """A dozen faults, of most kinds there are: every law holds, and all is idle again."""
    faults = (*(kind for kind in KINDS if kind not in {*LONG, "clock"}), *sorted(CLOCKS))
    found = await run(
        Plan(seed=SEED, seconds=26.0, every=1.8, longest=5.0, depth=30, cpus=3, faults=faults), Silent()
    )
    assert found.clean, report.text(found)
    assert found.faults >= 6  # how many fit into the time is the machine's to say
    assert len(report.kinds(found.outcomes)) >= 5
    assert found.completed >= 20
    assert ALONE & set(report.kinds(found.outcomes))
