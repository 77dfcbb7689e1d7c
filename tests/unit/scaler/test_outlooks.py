from kettle.client.explanations.worker_pools import outlook_sentence
from kettle_services.scaler.domain.leases.lease import Lease, fold
from kettle_services.scaler.domain.outlooks import outlooks, waiting_jobs
from kettle_services.scaler.domain.pools import PoolState, decide_apply, decide_pause, fold_pool
from kettle_wire.commands.outlooks import OutlookKind
from kettle_wire.events.lease import Demand, LeaseRequested
from kettle_wire.events.plan import Bound, Obstacle, OfferObstacle, PlanMade, WaitingJobs
from kettle_wire.worker_pools import Offer, WorkerPool

OFFER = Offer(name="small", provider="process", cpus=2, memory=1024, boot=30.0)
POOL = WorkerPool(name="lab", offers=[OFFER])
NOW = 1_700_000_000.0


def pool(*, paused: bool = False) -> PoolState:
    [applied] = decide_apply(None, POOL, "d", by="ada", now=NOW)
    state = fold_pool(None, applied, NOW)
    for event in decide_pause(state, by="ada", now=NOW, reason="repairs") if paused else ():
        state = fold_pool(state, event, NOW)
    return state


def lease(name: str, autocluster: int) -> Lease:
    event = LeaseRequested(
        lease=name,
        pool="lab",
        offer=OFFER,
        life=60.0,
        until=NOW + 60,
        demand=[Demand("ada", "ap1", str(autocluster), 2)],
    )
    found = fold(None, event, NOW)
    assert found is not None
    return found


def waiting(*obstacles: OfferObstacle, limited: int = 0, young: int = 0) -> WaitingJobs:
    return WaitingJobs(
        submitter="ada",
        schedd="ap1",
        autocluster=3,
        jobs=2,
        obstacles=list(obstacles),
        limited=limited,
        young=young,
    )


def obstacle(kind: Obstacle, words: str = "", until: float = 0.0) -> OfferObstacle:
    return OfferObstacle(pool="lab", offer="small", obstacle=kind, words=words, until=until)


def sentence(jobs: WaitingJobs, *, paused: bool = False) -> str:
    """What the one pool does about jobs for which no machine comes."""
    [found] = outlooks(jobs, {"lab": pool(paused=paused)}, {})
    return outlook_sentence(found, now=NOW)


def test_machines_that_come_for_the_jobs_are_named() -> None:
    """Those that a plan asked for because of them, and no others, with the time of the first."""
    leases = {"lab-1-1": lease("lab-1-1", 3), "lab-1-2": lease("lab-1-2", 4)}
    [found] = outlooks(waiting(), {"lab": pool()}, leases)
    assert (OutlookKind.PLANNED, ["lab-1-1"], NOW + 30) == (found.kind, found.leases, found.next_try)


def test_each_obstacle_has_its_sentence() -> None:
    """Closed with the next try, budget, another bound, paused by whom, and no offer that could hold it."""
    closed = sentence(waiting(obstacle(Obstacle.CLOSED, "no capacity", NOW + 600)))
    assert closed.startswith(
        "pool lab: it waits for machines of small, which cannot be had now: no capacity; it is tried again"
    )
    assert "budget of this day (UTC) is used up" in sentence(
        waiting(obstacle(Obstacle.BOUND, Bound.BUDGET.value))
    )
    assert "as many as it may have (max)" in sentence(waiting(obstacle(Obstacle.BOUND, Bound.POOL_MAX.value)))
    assert "paused by ada: repairs" in sentence(waiting(obstacle(Obstacle.PAUSED)), paused=True)
    assert sentence(waiting(obstacle(Obstacle.CLAUSE, "TARGET.Cpus >= 64"))).endswith(
        "could run it: small: TARGET.Cpus >= 64"
    )
    assert "has as much as it may have" in sentence(waiting(limited=2))
    assert "has not waited long enough" in sentence(waiting(young=2))


def test_only_jobs_of_the_kind_are_looked_at() -> None:
    """Submitter, access point and autocluster together are a kind."""
    plan = PlanMade(number=1, inputs="", slots=0, leases=0, waiting=[waiting()])
    assert waiting_jobs(plan, "ada", "ap1", 3) is not None
    assert waiting_jobs(plan, "ada", "ap2", 3) is None
    assert waiting_jobs(plan, "eve", "ap1", 3) is None
