"""What services report of deeds and refusals is theirs to report."""

from typing import cast

import pytest

from kettle.bus.ports import RefusedError
from kettle.runtime import Telemetry
from kettle_services.iam.alarms import DenialRecord
from kettle_services.iam.record import Record
from kettle_services.iam.reported_deeds import ReportedDeeds
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.deeds import ReportDeed
from kettle_wire.events.iam import AccessDenied, AdministratorActed
from kettle_wire.identity import Identity, daemon, worker

JOINED = [worker("n1"), daemon("schedd", "n1"), daemon("master", "n1")]


@pytest.fixture
def deeds() -> ReportedDeeds:
    """Nothing is written here: the record is for refusals that come over HTTP."""
    return ReportedDeeds(DenialRecord(cast("Record", None), Telemetry()))


def deed(where: str, *, denied: str = "") -> ReportDeed:
    return ReportDeed(
        id="1", at=1.0, who="ada", action="schedd.act", where=where, sentence="as usual", denied=denied
    )


@pytest.mark.parametrize("caller", JOINED, ids=str)
async def test_who_has_joined_reports_of_itself(deeds: ReportedDeeds, caller: Identity) -> None:
    """It is named as who says so; of others it reports neither deeds nor refusals."""
    for where in ("n2", "schedd", ""):
        for denied in ("", "denied"):
            with pytest.raises(RefusedError, match="not its own") as refused:
                await deeds.report(deed(where, denied=denied), caller)
            assert RefusalCode.MALFORMED == refused.value.code
    [(stream, acted)] = (await deeds.report(deed("n1"), caller)).changes
    assert isinstance(acted, AdministratorActed)
    assert (f"deeds/{caller.token}", caller.name) == (stream, acted.by)
    [(_, refusal)] = (await deeds.report(deed("n1", denied="denied"), caller)).changes
    assert isinstance(refusal, AccessDenied)
    assert f"schedd.act at n1, says {caller.token}" == refusal.action


async def test_nobody_who_has_joined_fills_the_record(deeds: ReportedDeeds) -> None:
    """Each has reports of its own; the pool's services have no such limit."""
    first, other = worker("n1"), worker("n2")

    async def much() -> None:
        for _ in range(1000):
            await deeds.report(deed("n1"), first)

    with pytest.raises(RefusedError) as refused:
        await much()
    assert RefusalCode.BUSY == refused.value.code
    assert refused.value.retry_after_ms
    assert (await deeds.report(deed("n2"), other)).changes
    for _ in range(1000):
        assert (await deeds.report(deed("anything"), daemon("schedd"))).changes
