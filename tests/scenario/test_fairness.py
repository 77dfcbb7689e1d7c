"""
Usage follows the priority factors in a whole pool with real services and simulated machines.

The same with fifty users, 20,000 jobs and 200 machines is `make bench PART=fairness`.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
PROGRAM: Final = "tests.performance.fairness"
WITHIN_S: Final = 240.0


async def simulated(*arguments: str) -> dict[str, Any]:
    """What the program found out."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", PROGRAM, *arguments),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(WITHIN_S):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()  # its pool has a lifeline to it
            await process.wait()
    assert process.returncode == 0, err.decode()
    found: dict[str, Any] = json.loads(out)
    return found


async def test_usage_follows_the_factors() -> None:
    """
    Five users with factors 1 to 5 times 1000 on 80 cores, for half a simulated hour: 35.0, 17.5, 11.7, 8.8 and 7.0 cores are due.

    A share of part of a core is rounded up once for who is served first, so everybody may have one core more than is due, all of
    them at the cost of the last. Without factors the first would have 19 fewer and the last 9 more.
    """
    found = await simulated("--users=5", "--jobs=1200", "--machines=10", "--seconds=1800", "--pace=90")

    assert found["least_waiting"] > 0, "an owner without jobs cannot have a share"
    assert found["cores_used"] > 0.9 * 80
    assert found["second_half"]["most_cores_over"] < 2.0
    assert found["second_half"]["most_cores_under"] < 4.0
