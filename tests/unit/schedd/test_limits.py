"""How many jobs the site lets in, and lets run."""

import msgspec
import pytest

from kettle_services.schedd.domain.jobs.commands import Assign
from kettle_services.schedd.domain.jobs.decide import decide
from kettle_services.schedd.domain.queue.fold import Queue, job_stream
from kettle_services.schedd.domain.submission.validation import Unacceptable, check
from kettle_services.schedd.queue.limits import QueueLimits
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.ads import Ad
from kettle_wire.events import ClaimGranted, ClusterSubmitted, FactorySubmitted
from kettle_wire.jobs import JobId


def queue(*owners: str, running: int = 0) -> Queue:
    """With three jobs of each owner, of which the first `running` of the first one run."""
    found = Queue("ap")
    for number, owner in enumerate(owners, start=1):
        event = ClusterSubmitted(cluster=number, owner=owner, ad={"Cmd": "x"}, columns=[], rows=[[], [], []])
        found.apply(f"cluster/{number}", event, 1)
    for proc in range(running):
        claim, job = f"c{proc}", JobId(1, proc)
        granted = ClaimGranted(
            claim=claim, startd="m", slot="s", slot_ad={}, submitter=owners[0], autocluster=1, lease=1.0
        )
        found.apply(f"claim/{claim}", granted, 1)
        for each in decide(found.jobs[job].job, Assign(claim, "s", "m")):
            found.apply(job_stream(job), each, 1)
    return found


def limits(found: Queue, **settings: int) -> QueueLimits:
    return QueueLimits(found, msgspec.convert(settings, ScheddSettings))


@pytest.mark.parametrize(
    ("settings", "jobs", "name"),
    [
        ({"max_jobs_per_owner": 5}, 2, ""),
        ({"max_jobs_per_owner": 5}, 3, "max_jobs_per_owner"),
        ({"max_jobs_submitted": 8}, 2, ""),
        ({"max_jobs_submitted": 8}, 3, "max_jobs_submitted"),
        ({"max_jobs_submitted": 0}, 1000, ""),
    ],
)
def test_what_is_too_much_is_refused_with_what_to_do(settings: dict[str, int], jobs: int, name: str) -> None:
    """Anna and Eve have three jobs each; the sentence names the limit and a way around it."""
    found = limits(queue("anna", "eve"), **settings)
    said = found.refusal("anna", jobs)
    assert (bool(name), name in said, bool(name)) == (bool(said), True, "max_idle" in said)


@pytest.mark.parametrize(
    ("settings", "room"),
    [
        ({"max_jobs_per_owner": 5}, 2),
        ({"max_jobs_submitted": 8}, 1),
        ({"max_jobs_submitted": 20}, 12),
        ({"max_jobs_submitted": 7}, 0),
        ({"max_jobs_submitted": 1}, 0),
    ],
)
def test_jobs_that_come_little_by_little_leave_some_room(settings: dict[str, int], room: int) -> None:
    """A tenth of the queue, at least one place, is for jobs that are submitted at once; six are there."""
    assert room == limits(queue("anna", "eve"), **settings).room_in_queue("anna")


@pytest.mark.parametrize(
    ("settings", "jobs", "name"),
    [
        ({"max_unmade_jobs_per_owner": 10}, 4, ""),
        ({"max_unmade_jobs_per_owner": 10}, 5, "max_unmade_jobs_per_owner"),
        ({"max_factories_per_owner": 2}, 1, "max_factories_per_owner"),
        ({"max_factories_per_owner": 3}, 1, ""),
    ],
)
def test_jobs_that_are_not_made_count(settings: dict[str, int], jobs: int, name: str) -> None:
    """
    Anna has promised six in two submissions: how many more, and how many submissions, is bounded; Eve's are her own.
    """
    found = Queue("ap")
    for number, owner in enumerate(("anna", "anna", "eve"), start=1):
        event = FactorySubmitted(
            cluster=number, owner=owner, ad={"JobMaterializeLimit": 1}, columns=[], rows=[[], [], []]
        )
        found.apply(f"cluster/{number}", event, 1)
    said = limits(found, **settings).refusal_of_factory("anna", jobs)
    assert (bool(name), True) == (bool(said), name in said)
    assert "" == limits(found, **settings).refusal_of_factory("eve", 1)


def test_a_submission_that_is_too_large_says_what_to_do() -> None:
    """As several clusters, or little by little."""
    with pytest.raises(Unacceptable, match="several clusters, or with max_idle"):
        check({"Cmd": "x"}, [], [[], []], limit=1)


@pytest.mark.parametrize(
    ("settings", "asked", "anna", "eve"),
    [
        ({"max_jobs_running": 4}, {}, 2, 2),
        ({"max_jobs_running": 4}, {("eve", 1): 1}, 1, 1),
        ({"max_running_jobs_per_owner": 3}, {}, 1, 3),
        ({"max_running_jobs_per_owner": 3}, {("anna", 1): 1, ("eve", 2): 1}, 0, 2),
        ({"max_jobs_running": 3, "max_running_jobs_per_owner": 9}, {}, 1, 1),
        ({"max_jobs_running": 1}, {}, 0, 0),
    ],
)
def test_no_more_claims_are_asked_for_than_may_run(
    settings: dict[str, int], asked: dict[tuple[str, int], int], anna: int, eve: int
) -> None:
    """Two jobs of anna's run: what runs and what is being asked for counts against the limits."""
    found = limits(queue("anna", "eve", running=2), **settings)
    assert (anna, eve) == tuple(found.room_to_run(who, asked) for who in ("anna", "eve"))


def test_jobs_in_an_accounting_group_are_their_owners_jobs() -> None:
    """
    An owner's running jobs are counted together, no matter which name is charged, and so are claims that are being
    requested.
    """
    found = queue("anna", "eve", running=2)
    ad: Ad = {"Cmd": "x", "AccountingGroup": "birds.anna"}
    found.apply("cluster/3", ClusterSubmitted(cluster=3, owner="anna", ad=ad, columns=[], rows=[[], []]), 1)
    three = limits(found, max_running_jobs_per_owner=3)
    assert [1, 1, 3] == [three.room_to_run(who, {}) for who in ("anna", "birds.anna", "eve")]
    assert 0 == three.room_to_run("anna", {("birds.anna", 7): 1})
    assert "jobs of anna run" in limits(found, max_running_jobs_per_owner=2).limit_in_force("birds.anna")


def test_a_job_that_a_limit_keeps_waiting_says_so() -> None:
    """By the name of the limit that is reached."""
    found = queue("anna", "eve", running=2)
    assert "" == limits(found, max_jobs_running=3).limit_in_force("anna")
    assert "max_jobs_running" in limits(found, max_jobs_running=2).limit_in_force("eve")
    assert "max_running_jobs_per_owner" in limits(found, max_running_jobs_per_owner=2).limit_in_force("anna")
    assert "" == limits(found, max_running_jobs_per_owner=2).limit_in_force("eve")
