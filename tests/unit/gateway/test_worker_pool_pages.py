"""The pages of pools of workers, without a browser."""

from datetime import UTC, datetime, timedelta

import msgspec

from kettle_services.gateway.pages.assets import Assets
from kettle_services.gateway.pages.frame import Frame
from kettle_services.gateway.pages.pool.worker_pools import (
    AskedPool,
    OfferRow,
    PoolsView,
    PoolView,
    decision,
    drawn,
    kinds_of,
    row_of,
)
from kettle_wire.events.lease import Shape
from kettle_wire.events.plan import Bound, Obstacle, OfferObstacle, PlannedMachines, WaitingJobs
from kettle_wire.rest.worker_pools import (
    Lease,
    Leases,
    MachinesOverTime,
    OfferStanding,
    Plan,
    Pool,
    PoolAtAGlance,
    StaticMachineAtAGlance,
)
from kettle_wire.worker_pools import HostState, Offer, PoolKind, WorkerPool

from .rendered import TEMPLATES

NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)
EVIL = "<script>alert(1)</script>"
PHASES = {"wanted": 5, "coming": 1, "ready": 2, "leaving": 0}


def frame() -> Frame:
    return Frame(title="Pools", path="/pools", query={}, now=NOON, assets=Assets().addresses)


def glance(*planned: PlannedMachines, standing: str = "active", reason: str = "") -> PoolAtAGlance:
    return PoolAtAGlance(
        name="lab",
        kind="shared",
        standing=standing,
        by="ada" if reason else "",
        reason=reason,
        min=0,
        max=4,
        machines=PHASES,
        waiting=1200,
        planned=list(planned),
        closed_offers=1,
        next_try=NOON + timedelta(minutes=5),
        spent=1.25,
        budget=5.0,
        currency="EUR",
        version=2,
        changed=NOON,
    )


def planned(machines: int, wanted: int, bound: Bound = Bound.NEED) -> PlannedMachines:
    return PlannedMachines(
        pool="lab", offer="small", shape=Shape.SHARED, machines=machines, wanted=wanted, bound=bound
    )


def test_a_decision_says_what_is_ordered_and_what_bound_it() -> None:
    """What is wanted and not ordered has its reason; a pool that makes nothing says who stopped it."""
    assert "no more machines are needed" == decision(glance())
    assert "2 ordered" == decision(glance(planned(2, 2)))
    held_back = decision(glance(planned(1, 3, Bound.CANARY)))
    assert held_back.startswith("1 ordered, 2 more wanted: ")
    assert "tried with one machine first" in held_back
    assert "paused by ada: repairs" == decision(glance(planned(0, 3), standing="paused", reason="repairs"))


def test_the_page_of_all_pools_says_how_to_begin() -> None:
    """Without a pool, and without a scaler, there is the way to the first; with one there is a row."""
    empty = TEMPLATES.render("pool/worker_pools.html", frame(), PoolsView(rows=[], trouble=""))
    assert "kettle pool example" in empty
    without = TEMPLATES.render("pool/worker_pools.html", frame(), PoolsView(rows=[], trouble="no <scaler>"))
    assert "No &lt;scaler&gt;." in without
    view = PoolsView(rows=[row_of(glance(planned(1, 3, Bound.CANARY)))], trouble="")
    html = TEMPLATES.render("pool/worker_pools.html", frame(), view)
    assert 'href="/pools/lab"' in html
    for said in (
        "1.25 EUR of 5 EUR",
        "1 closed, tried again",
        "1\N{NARROW NO-BREAK SPACE}200",
        "2 more wanted",
    ):
        assert said in html


def test_machines_over_time_are_steps() -> None:
    """The highest number is at the top, each change is a step, and what does not change has two points."""
    times = [NOON + timedelta(minutes=number) for number in range(5)]
    past = MachinesOverTime(times=times, wanted=[0, 4, 4, 2, 2], coming=[0] * 5, ready=[0, 0, 2, 2, 2])
    picture = drawn(past)
    points = {line.name: line.points for line in picture.lines}
    assert 4 == picture.most
    assert "0.0,100.0 250.0,100.0 250.0,0.0 750.0,0.0 750.0,50.0 1000.0,50.0" == points["wanted"]
    assert "0.0,100.0 1000.0,100.0" == points["coming"]
    assert [(times[0], 0, 0, 0), (times[4], 2, 0, 2)] == [picture.rows[0], picture.rows[-1]]


def test_a_pool_is_shown_with_its_machines_and_reasons() -> None:
    """
    Offers say until when they are closed, machines their deadline and cost, jobs what is in their way in this pool alone; what others
    wrote is text.
    """
    offer = Offer(name="small", provider="cloud", cpus=2, memory=2048, price=0.05, currency="EUR")
    jobs = WaitingJobs(
        submitter=EVIL,
        schedd="ap",
        autocluster=3,
        jobs=7,
        planned=3,
        obstacles=[
            OfferObstacle(
                pool="lab", offer="small", obstacle=Obstacle.CLOSED, words=EVIL, until=NOON.timestamp() + 60
            ),
            OfferObstacle(pool="web", offer="other", obstacle=Obstacle.OWNER),
        ],
    )
    closed = OfferStanding(
        offer="small", provider="cloud", closed=True, closed_until=NOON, error="quota", words=EVIL
    )
    lease = Lease(
        id="lab-1-0",
        pool="lab",
        offer="small",
        provider="cloud",
        state="booting",
        since=NOON,
        deadline=NOON + timedelta(minutes=3),
        requested=NOON,
        cpus=2,
        cost=0.0125,
        currency="EUR",
        words=EVIL,
    )
    summary = glance(planned(1, 3, Bound.CANARY))
    pool = Pool(summary=summary, pool=WorkerPool(name="lab", offers=[offer]), offers=[closed])
    plan = Plan(
        number=9, at=NOON, carried_out=True, slots=4, leases=1, waiting=[jobs], machines=[], removals=[]
    )
    view = PoolView(
        asked=AskedPool(pool="lab"),
        pool=pool,
        row=row_of(summary),
        offers=[OfferRow(offer=offer, standing=closed, price="0.05 EUR")],
        plan=plan,
        kinds=kinds_of([jobs], "lab"),
        more_kinds=0,
        machines=["1 machine of lab.small (shared)"],
        removals=[],
        powered=[],
        leases=Leases(leases=[lease], more=2),
        picture=drawn(MachinesOverTime(times=[NOON, NOON], wanted=[1, 1], coming=[1, 1], ready=[0, 0])),
        trouble="",
    )
    html = TEMPLATES.render("pool/worker_pool.html", frame(), view)
    assert "<script>alert" not in html
    for said in (
        "closed (quota), tried again",
        "small: it is closed",
        "0.0125 EUR",
        "in 3 min",
        "3 get machines by this plan, 4 must wait",
        "2 more are left out",
        'class="wanted"',
    ):
        assert said in html, said
    assert "other" not in html


def test_machines_that_are_there_are_shown_with_their_states() -> None:
    """
    A static pool has its machines instead of leases; one that is broken is an alarm, with its reason as text.
    """
    desks = [
        StaticMachineAtAGlance(
            machine="desk1", offer="desk", state=HostState.WAKING, since=NOON, deadline=NOON
        ),
        StaticMachineAtAGlance(machine="desk2", offer="desk", state=HostState.BROKEN, words=EVIL, failures=3),
    ]
    summary = msgspec.structs.replace(
        glance(), kind="static", hosts={"waking": 1, "broken": 1}, planned=[planned(1, 1)]
    )
    offer = Offer(name="desk", provider="power", cpus=2, memory=4096)
    pool = Pool(
        summary=summary,
        pool=WorkerPool(name="desks", kind=PoolKind.STATIC, offers=[offer]),
        offers=[OfferStanding(offer="desk", provider="power", leases=0, closed=False)],
        hosts=desks,
    )
    view = PoolView(
        asked=AskedPool(pool="desks"),
        pool=pool,
        row=row_of(summary),
        offers=[OfferRow(offer=offer, standing=pool.offers[0], price="")],
        plan=None,
        kinds=[],
        more_kinds=0,
        machines=[],
        removals=[],
        powered=["desk1 is woken: a job waits that it could run"],
        leases=Leases(leases=[], more=0),
        picture=None,
        trouble="",
    )
    html = TEMPLATES.render("pool/worker_pool.html", frame(), view)
    assert "<script>alert" not in html
    for said in ("1 waking, 1 broken", "desk1</a></th><td>desk</td><td>waking", 'class="alarm"', "1 woken"):
        assert said in html, said
    assert "It has no machine now" not in html
