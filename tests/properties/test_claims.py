"""
A schedd and a machine over a bad network: whatever happens, a claim ends once and no job runs twice at a time.
"""

import os

import pytest

from .claim_world import ClaimWorld, on_the_way

STEPS, WALKS = (100_000, 10) if "KETTLE_TEST_LONG" in os.environ else (15_000, 2)


@pytest.mark.parametrize("seed", range(WALKS))
def test_claims_keep_what_must_hold_on_both_sides(seed: int) -> None:
    """
    Never two claims in a static slot, never more in a divided one than it has, no two attempts of a job at a time, each claim and
    each job ends once; and when nothing is lost any more, nobody has a claim.
    """
    world = ClaimWorld(seed)
    for _ in range(STEPS):
        world.step()
    assert len(world.completed) > STEPS // 100
    world.settle()
    assert {} == world.queue.claims
    assert {} == world.machine.claims
    assert 0 == on_the_way(world)
