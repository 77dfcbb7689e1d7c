"""What is written of an ad for searches."""

from collections.abc import Sequence

import msgspec
import pytest

from kettle.jobs import apply, job_ad
from kettle.projections.jobs.searchable_attributes import Common, searchable
from kettle_wire.ads.types import Expr
from kettle_wire.attempts import Ending, ExitRecord
from kettle_wire.events import (
    ClusterSubmitted,
    JobAssigned,
    JobCompleted,
    JobEvent,
    JobHeld,
    JobReleased,
    JobRemoved,
    JobStarted,
    JobVacated,
    Usage,
)

USAGE = Usage(wall=2.5, user_cpu=0.5, memory_kib=5_000, disk_kib=7, sent=1, received=2)
SUBMITTED = ClusterSubmitted(
    cluster=7,
    owner="ada",
    ad={
        "CMD": "/bin/Sim", "requestcpus": 2, "Out": "o.$(ClusterId)", "Rank": Expr("Memory"), "memoryusage": 9,
        "Odd": "a\0b", "exitcode": 5, "Flag": True,
    },
    columns=["Args", "cmd", "ImageSize", "USER", "jobprio"],
    rows=[["-n $(ClusterId)", "/bin/other", 3, "ada@uni", 1], [Expr("1+1"), "x" * 300, 2.5, "eve@uni", 1 << 60]],
)  # fmt: skip
ASSIGNED, STARTED = (
    JobAssigned(attempt=1, claim="c", slot="s@m", startd="m"),
    JobStarted(attempt=1, pid=5, at=3.0),
)


@pytest.mark.parametrize("proc", [0, 1])
@pytest.mark.parametrize(
    "life",
    [
        [JobRemoved(reason="r")],
        [ASSIGNED, STARTED, JobCompleted(attempt=1, exit=ExitRecord(code=3), usage=USAGE)],
        [ASSIGNED, JobCompleted(attempt=1, exit=ExitRecord(signal=9), usage=USAGE)],
        [ASSIGNED, STARTED, JobVacated(attempt=1, ending=Ending(code=4, reason="v"), usage=USAGE), ASSIGNED, JobRemoved()],
        [JobHeld(code=3, reason="h", subcode=1), JobReleased(reason="ok"), ASSIGNED, JobHeld(code=1, reason="h")],
    ],
)  # fmt: skip
def test_what_a_cluster_has_in_common(proc: int, life: Sequence[JobEvent]) -> None:
    """
    Worked out once for a cluster, from any of its ads, it makes of each job what the ad alone makes of it.
    """
    ad = job_ad(SUBMITTED, 2_000_000, proc, schedd="ap")
    for number, event in enumerate(life):
        apply(ad, event, (3 + number) * 1_000_000)
    columns, document = searchable(ad)
    for other in (ad, job_ad(SUBMITTED, 2_000_000, 1 - proc, schedd="ap")):
        found, text = Common(other, SUBMITTED.columns).searchable(ad)
        assert (columns, msgspec.json.decode(document)) == (found, msgspec.json.decode(text))
        assert text.count('":') == len(msgspec.json.decode(text))
