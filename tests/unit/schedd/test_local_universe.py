"""Jobs that run where they were submitted: which may start, in what order, and how they are counted."""

from pathlib import Path
from typing import Any, cast

import pytest

from kettle.runtime.local_startd import LocalStartd, leave_word
from kettle_services.schedd.domain.claims.asked import AskedClaims
from kettle_services.schedd.domain.claims.claim import Claim
from kettle_services.schedd.domain.jobs.commands import Assign, End
from kettle_services.schedd.domain.jobs.decide import decide
from kettle_services.schedd.domain.jobs.universes import universe_with_all_rights
from kettle_services.schedd.domain.queue.at_home import in_order, totals
from kettle_services.schedd.domain.queue.fold import Queue, job_stream
from kettle_services.schedd.domain.submission.validation import Unacceptable, check
from kettle_services.schedd.jobs.local_universe import LocalUniverse
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.ads import Ad, Scalar
from kettle_wire.attempts import AttemptResult, Ending
from kettle_wire.commands.schedd import MatchedSlot
from kettle_wire.events import ClaimGranted, ClusterSubmitted
from kettle_wire.jobs import JobId

AD: Ad = {"Cmd": "/bin/true", "Requirements": True}


def queue(*universes: Scalar) -> Queue:
    """With one job of each universe."""
    found = Queue("ap")
    event = ClusterSubmitted(
        cluster=1, owner="alice", ad=AD, columns=["JobUniverse"], rows=[[each] for each in universes]
    )
    found.apply("cluster/1", event, 1)
    return found


def granted(kind: str) -> ClaimGranted:
    return ClaimGranted(
        claim="c", startd="m", slot="local_1@m", slot_ad={"SlotType": kind}, submitter="alice",
        autocluster=1, lease=10.0,
    )  # fmt: skip


def test_they_are_not_shown_to_the_negotiator() -> None:
    """Demand for machines is of vanilla jobs only; the others are found by who starts them here."""
    found = queue(5, 12, 7)

    assert [JobId(1, 0)] == [job for _, job, _, _ in found.demand.requests("alice")]
    assert [JobId(1, 1), JobId(1, 2)] == [job for job, *_ in in_order(found.demand.at_home, {}, 100)]


def test_they_start_by_priority_whatever_else_they_ask_for() -> None:
    """
    Jobs of one autocluster wait for a more urgent one of another, and those that are being asked for are left out.
    """
    found = Queue("ap")
    for number, (cpus, priorities) in enumerate([(1, [0, 9, 8]), (2, [5, 9])], start=1):
        ad: Ad = {**AD, "JobUniverse": 7, "RequestCpus": cpus}
        rows: list[list[Scalar]] = [[each] for each in priorities]
        event = ClusterSubmitted(cluster=number, owner="alice", ad=ad, columns=["JobPrio"], rows=rows)
        found.apply(f"cluster/{number}", event, number)

    ordered = in_order(found.demand.at_home, {}, 100)
    assert [(JobId(1, 1), 1), (JobId(2, 1), 1), (JobId(1, 2), 1), (JobId(2, 0), 1), (JobId(1, 0), 1)] == [
        (job, count) for job, _, _, count in ordered
    ]
    first = ordered[0][1:3]
    assert [JobId(2, 1), JobId(1, 2), JobId(2, 0), JobId(1, 0)] == [
        job for job, *_ in in_order(found.demand.at_home, {first: 1}, 100)
    ]


def test_they_are_counted_by_universe_while_an_attempt_may_live() -> None:
    """
    What START_LOCAL_UNIVERSE sees: as many as run, until each attempt is over, and none in the fair share.
    """
    found = queue(12, 12, 7)
    job = JobId(1, 0)
    found.apply("claim/c", granted("Local"), 2)
    for event in decide(found.jobs[job].job, Assign("c", "local_1@m", "m")):
        found.apply(job_stream(job), event, 3)

    running = totals(found), found.attendance.of("alice")
    for event in decide(
        found.jobs[job].job,
        End(attempt=1, claim="c", result=AttemptResult(ending=Ending(code=1022, reason=""))),
    ):
        found.apply(job_stream(job), event, 4)

    idle = {"TotalLocalJobsIdle": 1, "TotalSchedulerJobsIdle": 1, "TotalSchedulerJobsRunning": 0}
    assert ({**idle, "TotalLocalJobsRunning": 1}, 1) == running
    assert {**idle, "TotalLocalJobsIdle": 2, "TotalLocalJobsRunning": 0} == totals(found)


@pytest.mark.parametrize(("kind", "home"), [("Local", True), ("Dynamic", False)])
def test_a_claim_says_where_it_is(kind: str, home: bool) -> None:
    """Claims on the schedd's own machine are not given to the next job."""
    assert home == Claim(granted(kind), 1).once


@pytest.mark.parametrize(
    ("universe", "running", "may"), [(12, 199, True), (12, 200, False), (7, 499, True), (7, 500, False)]
)
def test_the_limits_are_htcondors(universe: int, running: int, may: bool) -> None:
    """200 local jobs and 500 of the scheduler universe, unless the site says otherwise."""
    ad: Ad = {"TotalLocalJobsRunning": running, "TotalSchedulerJobsRunning": running}

    assert may == ScheddSettings().starting.allows(universe, ad, AD, now=0.0)


def test_an_expression_may_ask_the_job_and_allows_nothing_if_it_is_undefined() -> None:
    """TARGET is the job; a name that nobody has makes no job start."""
    starting = ScheddSettings(
        start_local_universe="TARGET.Small", start_scheduler_universe="NoSuchThing < 3"
    ).starting

    assert starting.allows(12, {}, {"Small": True}, now=0.0)
    assert not starting.allows(12, {}, {"Small": False}, now=0.0)
    assert not starting.allows(7, {}, {}, now=0.0)


def test_what_is_no_expression_is_refused_with_its_name() -> None:
    """The schedd does not start with it."""
    with pytest.raises(ValueError, match="start_local_universe"):
        ScheddSettings(start_local_universe="1 +")


@pytest.mark.parametrize("universe", [10, 13, "12", True])
def test_other_universes_are_refused(universe: Scalar) -> None:
    """In the cluster's ad and in a row alike, and a text or a truth value is no universe."""
    with pytest.raises(Unacceptable, match="vanilla, parallel, grid, local and scheduler"):
        check({**AD, "JobUniverse": universe}, [], [[]], limit=10)
    with pytest.raises(Unacceptable, match="vanilla, parallel, grid, local and scheduler"):
        check(AD, ["JobUniverse"], [[12], [universe]], limit=10)


class Claims:
    """Notes for how many jobs of whom claims are asked."""

    def __init__(self) -> None:
        self.asked = AskedClaims()

    def request_matched(self, match: MatchedSlot, _refused: object) -> None:
        self.asked.enter(match, match.count)


async def test_no_owner_takes_all_places_of_the_scheduler_universe(tmp_path: Path) -> None:
    """Others' jobs start behind very many of one owner, whose claims that are being asked for count."""
    found = Queue("ap")
    for cluster, (owner, jobs) in enumerate([("alice", 5), ("eve", 1)], start=1):
        ad: Ad = {**AD, "JobUniverse": 7}
        event = ClusterSubmitted(cluster=cluster, owner=owner, ad=ad, columns=[], rows=[[]] * jobs)
        found.apply(f"cluster/{cluster}", event, cluster)
    leave_word(tmp_path, LocalStartd(startd="m", slot="local", capability="x"))
    claims = Claims()
    settings = ScheddSettings(home=str(tmp_path), max_scheduler_jobs_per_owner=3)
    universe = LocalUniverse(found, cast("Any", claims), settings)
    for _ in range(2):
        await universe.start_allowed()
        assert {"alice": 3, "eve": 1} == {
            submitter: asked for (submitter, _), asked in claims.asked.jobs.items()
        }
    assert "as many jobs of alice run" in universe.explain(JobId(1, 4))
    assert "" == universe.explain(JobId(2, 0))


@pytest.mark.parametrize(
    ("universe", "word"),
    [(5, ""), (11, ""), (7, "Scheduler"), (9, "Grid"), (12, "Local")],
)
def test_what_a_running_job_may_not_submit(universe: int, word: str) -> None:
    """
    Jobs that have all rights of their owner's account, in batch systems too, whether all or one of them is such.
    """
    assert word == universe_with_all_rights({"JOBUNIVERSE": universe}, [], [[]])
    assert word == universe_with_all_rights({}, ["JobUniverse"], [[5], [universe]])
