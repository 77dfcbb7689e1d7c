"""How a candidacy ends that cannot go on."""

import pytest

from kettle.runtime import OwnerSettings
from kettle.runtime.leader_election import Candidacy


class BrokenError(Exception):
    """What no retry mends."""


async def test_the_service_is_told_why_it_cannot_be_elected(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not that a loop is closed, when the candidacy is left."""

    async def broken(_self: Candidacy) -> None:
        raise BrokenError

    monkeypatch.setattr(Candidacy, "_be_candidate", broken)
    with pytest.raises(BrokenError):
        async with Candidacy.enter(OwnerSettings(), "test", "shard") as candidacy:
            await candidacy.failure()
