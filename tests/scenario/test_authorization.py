"""The table [authorization] of a running pool: who is refused, and what the refusal says."""

from pathlib import Path
from typing import Any

import pytest

from kettle.client import CommandRefusedError
from kettle.testing.throwaway_pool import ThrowawayPool

from .persons import somebody

DESCRIPTION = "executable = /bin/true\nrequirements = false\nqueue\n"


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {
        "cpus": 1,
        "settings": {
            "authorization": {
                "domain": "pool",
                "deny": {"WRITE_SCHEDD": ["eve@*"], "READ_NEGOTIATOR": ["*@*"]},
            }
        },
    }


async def as_eve(pool: ThrowawayPool, tmp_path: Path) -> None:
    lines = (pool.home / "kettle.toml").read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "eve@*" in text)
    async with somebody(pool, "eve", tmp_path) as eve:
        with pytest.raises(CommandRefusedError) as refused:
            await eve.submit(DESCRIPTION, cwd=tmp_path)
        assert "denied" == refused.value.code
        assert (
            "eve@pool has not the level WRITE, which schedd.submit takes: denied by "
            f"{pool.home}/kettle.toml:{line}: deny WRITE_SCHEDD = eve@*"
        ) in str(refused.value)
        assert [] == await eve.jobs()
        with pytest.raises(
            CommandRefusedError, match=r"READ, which negotiator.query_priorities takes: denied"
        ):
            await eve.accountant.priorities([])


async def test_a_person_is_refused_by_the_lists_of_the_pool(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    Over the bus, with who, level, rule and line; what the lists do not name goes on, and nothing is in the queue.
    """
    with pytest.raises(CommandRefusedError, match=r"which schedd.act takes: denied by"):
        await as_eve(pool, tmp_path)  # at its end her jobs would be removed
    async with somebody(pool, "grace", tmp_path) as grace:
        assert [] == await grace.jobs()
        with pytest.raises(CommandRefusedError, match=r"denied by .*: deny READ_NEGOTIATOR = \*@\*"):
            await grace.accountant.priorities([])
