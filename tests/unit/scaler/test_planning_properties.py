"""What holds for whatever waits, and that everything that can be said of a pool has an effect."""

from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kettle_services.scaler.domain.hosts.host import Host
from kettle_services.scaler.domain.planning.bounds import bill, day_of
from kettle_services.scaler.domain.planning.inputs import Room
from kettle_services.scaler.domain.planning.spending import Spending
from kettle_wire.ads import Expr
from kettle_wire.events.lease import LeaseGone
from kettle_wire.examination import Examination, Notices
from kettle_wire.worker_pools import (
    Hibernation,
    HostState,
    Market,
    Offer,
    PoolKind,
    ScaleDown,
    StaticMachine,
    WorkerPool,
)

from .planning_lab import REQUIREMENTS, Lab, job, machine_slot, machines, offer, pool

SHAPES: Final = st.tuples(
    st.sampled_from([1, 1, 2, 4]), st.sampled_from([1024, 2048, 4096, 8192, 16_384]), st.integers(1, 200)
)
QUEUES: Final = st.lists(SHAPES, min_size=1, max_size=6)
_LABEL: Final = "currency"
"""Of a pool's budget: it has to be that of its offers, which who reads the pool file sees to; amounts are compared as they are."""
_LARGE: Final = offer("large", 16, 65_536)


def queued(lab: Lab, shapes: list[tuple[int, int, int]]) -> Lab:
    for number, (cpus, memory, count) in enumerate(shapes):
        lab.queue(count, job(cpus, memory), submitter=f"user{number % 3}")
    return lab


@given(QUEUES, st.integers(0, 12), st.integers(0, 6), st.integers(0, 100), st.integers(0, 8))
@settings(max_examples=25, deadline=None)
def test_never_more_than_any_bound(
    shapes: list[tuple[int, int, int]], most: int, of_small: int, cores: int, euros: int
) -> None:
    """However often is planned, with all machines in doubt."""
    small = offer("small", 8, 16_384, max=of_small, price=1.0, currency="EUR")
    lab = Lab(pool(max=most, offers=[small, _LARGE], budget=float(euros), currency="EUR"))
    lab.rooms["local"] = Room(cpus=cores, at=lab.now)
    lab.now += 1
    for _ in range(4):
        queued(lab, shapes).cycle()
    held = [lease.offer for lease in lab.leases.values()]
    assert len(held) <= most
    assert not of_small or held.count(small) <= of_small
    assert sum(each.cpus for each in held) <= cores
    assert not euros or sum(each.price for each in held) <= euros


@given(QUEUES)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_packing_is_near_the_least_volume(shapes: list[tuple[int, int, int]]) -> None:
    """No more than a quarter above what the scarcest resource takes, and one machine that is not full."""
    lab = queued(Lab(pool(offers=[_LARGE], max=10_000, dedicated_fraction=1.0)), shapes)
    cores = sum(cpus * count for cpus, _, count in shapes) / _LARGE.cpus
    memory = sum(each * count for _, each, count in shapes) / _LARGE.memory
    assert machines(lab.plan())["large"] <= 1.25 * max(cores, memory) + 1


@given(QUEUES)
@settings(max_examples=20, deadline=None, derandomize=True)
def test_everything_that_can_be_served_is_planned_once(shapes: list[tuple[int, int, int]]) -> None:
    """
    Each job has a place in the first plan, and while its machines are on their way later ones ask for no more.
    """
    lab = queued(Lab(pool(offers=[_LARGE], max=10_000, dedicated_fraction=1.0)), shapes)
    first = lab.cycle()
    assert [count for *_, count in sorted(shapes)] == [
        group.planned
        for group in sorted(first.made.waiting, key=lambda one: (one.cpus, one.memory, one.jobs))
    ]
    lab.accept(*lab.leases)
    assert [0] * 4 == [len(lab.cycle().leases) for _ in range(4)]


@given(QUEUES, st.permutations(range(3)))
@settings(max_examples=20, deadline=None)
def test_the_order_of_ads_does_not_matter(shapes: list[tuple[int, int, int]], order: list[int]) -> None:
    """Those who ask are served by their right, not by when their ads came."""
    one = queued(Lab(pool(max=7)), shapes)
    other = Lab(pool(max=7))
    for place in order:
        if f"user{place}" in one.requests:
            other.requests[f"user{place}"] = one.requests[f"user{place}"]
    assert one.plan() == other.plan()


# -- everything has an effect ------------------------------------------------------------------------------------------


def small_jobs(lab: Lab) -> None:
    lab.queue(20, job(1, 2000))


def more_than_there_is(lab: Lab) -> None:
    lab.slots["desk.slot1"] = machine_slot("desk", 1, 2000)
    small_jobs(lab)


def mixed_jobs(lab: Lab) -> None:
    small_jobs(lab)
    lab.queue(2, job(6, 4000))


def idle_machines(lab: Lab) -> None:
    lab.queue(16)
    lab.ready(*lab.act(lab.plan()))
    lab.requests = {}
    lab.now += 700


def queued_machines(lab: Lab) -> None:
    lab.queue(16)
    lab.act(lab.plan())
    lab.accept(*lab.leases)
    lab.requests = {}


def busy_machines(lab: Lab) -> None:
    idle_machines(lab)
    lab.busy(*lab.leases)


def long_jobs(lab: Lab) -> None:
    lab.queue(1, job(AllowedExecuteDuration=1800))


def jobs_with_gpus(lab: Lab) -> None:
    lab.queue(1, job(RequestGPUs=1))


def at_a_place(name: str) -> Callable[[Lab], None]:
    def queue(lab: Lab) -> None:
        lab.queue(1, job(Requirements=Expr(f'{REQUIREMENTS} && TARGET.{name} == "x"')))

    return queue


def few_jobs(lab: Lab) -> None:
    """Two machines have one job each, and have had for minutes."""
    small_jobs(lab)
    for lease in lab.act(lab.plan())[:2]:
        lab.ready(lease)
        lab.runs(lease, (1, 1024))
    for lease in [each for each, one in lab.leases.items() if not one.ready]:
        del lab.leases[lease]
    lab.requests = {}
    lab.plan()
    lab.now += 300


def sleeping_machine(lab: Lab) -> None:
    """A static pool, whatever it was, has machines that sleep, and a job waits."""
    pool = lab.pools["p"].pool
    one, *others = pool.offers
    if pool.kind is PoolKind.STATIC:
        one = msgspec.structs.replace(one, machines=[StaticMachine(name=f"desk{n}") for n in (1, 2)])
        pool = msgspec.structs.replace(pool, offers=[one, *others])
    else:
        pool = msgspec.structs.replace(pool, kind=PoolKind.STATIC, hibernate=Hibernation.S3)
    lab.pools["p"] = msgspec.structs.replace(lab.pools["p"], pool=pool)
    for name in ("desk1", "desk2"):
        lab.hosts[name] = Host(machine=name, pool="p", offer="one", state=HostState.ASLEEP)
    lab.queue(1)


OF_POOLS: Final[dict[str, tuple[Callable[[Lab], None], dict[str, Any], dict[str, Any]]]] = {
    "name": (small_jobs, {}, {"name": "q"}),
    "kind": (mixed_jobs, {}, {"kind": PoolKind.DEDICATED}),
    "min": (lambda _: None, {}, {"min": 1}),
    "max": (small_jobs, {}, {"max": 1}),
    "spare": (lambda _: None, {}, {"spare": 1}),
    "idle": (idle_machines, {}, {"idle": 900.0}),
    "life": (long_jobs, {}, {"life": 1800.0}),
    "least_life": (idle_machines, {}, {"least_life": 3600.0}),
    "consolidate": (few_jobs, {}, {"consolidate": 60.0}),
    "budget": (small_jobs, {}, {"budget": 1.0}),
    "owners": (small_jobs, {}, {"owners": ["bob"]}),
    "groups": (small_jobs, {}, {"groups": ["physics"]}),
    "max_machines_per_owner": (small_jobs, {}, {"max_machines_per_owner": 1}),
    "scale_down": (queued_machines, {}, {"scale_down": ScaleDown.STOP_ASKING}),
    "packing": (small_jobs, {}, {"packing": 0.5}),
    "dedicated_fraction": (mixed_jobs, {}, {"dedicated_fraction": 1.0}),
    "hibernate": (sleeping_machine, {"kind": PoolKind.STATIC}, {"hibernate": Hibernation.S3}),
    "waking": (
        sleeping_machine,
        {"kind": PoolKind.STATIC, "hibernate": Hibernation.S3, "min": 2},
        {"waking": 1},
    ),
    "waits": (more_than_there_is, {}, {"waits": 60.0}),
    "offers": (small_jobs, {}, {"offers": [offer("other", price=1.0, currency="EUR")]}),
}
"""By field: what is there, what else the pool says, and what is said otherwise."""
OF_OFFERS: Final[dict[str, tuple[Callable[[Lab], None], dict[str, Any]]]] = {
    "name": (small_jobs, {"name": "other"}),
    "provider": (small_jobs, {"provider": "full"}),
    "template": (small_jobs, {"template": "new"}),
    "flavour": (small_jobs, {"flavour": "m1"}),
    "cpus": (small_jobs, {"cpus": 4}),
    "memory": (small_jobs, {"memory": 4096}),
    "disk": (small_jobs, {"disk": 1}),
    "gpus": (jobs_with_gpus, {"gpus": 1}),
    "site": (at_a_place("Site"), {"site": "x"}),
    "region": (at_a_place("Region"), {"region": "x"}),
    "zone": (at_a_place("Zone"), {"zone": "x"}),
    "market": (small_jobs, {"market": Market.SPOT}),
    "price": (small_jobs, {"price": 3.0}),
    "currency": (small_jobs, {"currency": "CHF"}),
    "boot": (small_jobs, {"boot": 3000.0}),
    "life": (long_jobs, {"life": 1800.0}),
    "max": (small_jobs, {"max": 1}),
    "preference": (small_jobs, {"preference": -100.0}),
    "attributes": (at_a_place("Color"), {"attributes": {"Color": '"x"'}}),
    "start": (small_jobs, {"start": "TARGET.RequestMemory < 1000"}),
    "options": (small_jobs, {"options": {"image": "x"}}),
    "administrators": (small_jobs, {"administrators": ["eve"]}),
    "examination": (small_jobs, {"examination": Examination(gpus=1)}),
    "machines": (sleeping_machine, {"machines": [StaticMachine(name="desk1")]}),
    "notices": (small_jobs, {"notices": Notices(file="/run/gone")}),
}


def outcome(lab: Lab) -> object:
    """What is planned, but for what is the same in all plans."""
    plan = lab.plan()
    return plan.leases, plan.made.removals, plan.made.wakes


def lab_of(said: dict[str, Any], first: dict[str, Any]) -> Lab:
    of_one: dict[str, Any] = {"name": "one", "price": 1.0, "currency": "EUR", **first}
    one = offer(**of_one)
    other = offer("two", 8, 16_384, price=1.05, currency="EUR")
    of_pool: dict[str, Any] = {"offers": [one, other], "currency": "EUR", **said}
    lab = Lab(pool(**of_pool))
    lab.templates = {key: record for key, record in lab.templates.items() if "new" not in one.template}
    lab.rooms["full"] = Room(machines=0, at=lab.now)
    return lab


@pytest.mark.parametrize("field", [each for each in WorkerPool.__struct_fields__ if each != _LABEL])
def test_whatever_a_pool_says_has_an_effect(field: str) -> None:
    """A field that is said otherwise gives another plan."""
    scene, more, change = OF_POOLS[field]
    before, after = (lab_of({**more, **said}, {}) for said in ({}, change))
    if field == "idle":
        scene(before)
        after = before
        first = outcome(before)
        state = after.pools["p"]
        after.apply(msgspec.structs.replace(state.pool, **change))
    else:
        scene(before)
        scene(after)
        first = outcome(before)
    assert first != outcome(after)


@pytest.mark.parametrize("field", Offer.__struct_fields__)
def test_whatever_an_offer_says_has_an_effect(field: str) -> None:
    """What an offer says otherwise gives another machine, or another lease."""
    scene, change = OF_OFFERS[field]
    before, after = (lab_of({}, said) for said in ({}, change))
    scene(before)
    scene(after)
    assert outcome(before) != outcome(after)


# -- money by days -----------------------------------------------------------------------------------------------------

MIDNIGHT: Final = 1_790_035_200.0
"""Of the 22nd of September 2026 in UTC."""


def gone(cost: float, seconds: float) -> LeaseGone:
    return LeaseGone(words="", seconds=seconds, cost=cost)


def test_a_day_ends_at_midnight_utc() -> None:
    """What was spent before does not count any more, and of a lease over midnight what is after it."""
    spending = Spending()
    spending.add("my-pool-1-1", gone(5.0, 3600), MIDNIGHT - 10)
    assert {"my-pool": 5.0} == spending.on(MIDNIGHT - 1)
    assert {} == spending.on(MIDNIGHT)
    spending.add("my-pool-1-2", gone(4.0, 7200), MIDNIGHT + 3600)
    assert {"my-pool": 2.0} == spending.on(MIDNIGHT + 3600)


@pytest.mark.parametrize("change", [1_774_746_000.0, 1_792_890_000.0])
def test_summer_time_makes_no_day_longer(change: float) -> None:
    """The days on which Europe's clocks are changed have as many hours for budgets as all others."""
    day = day_of(change)
    assert [day, day, day + 86_400.0] == [day_of(each) for each in (day, day + 86_399, day + 86_400)]


def test_machines_that_run_are_paid_by_the_day_too() -> None:
    """A machine that runs since yesterday has cost what it has cost today."""
    lab = Lab(pool(budget=100.0, currency="EUR", offers=[offer(price=2.0, currency="EUR")]))
    lab.now = MIDNIGHT - 3600
    lab.queue(8)
    [lease] = lab.act(lab.plan())
    lab.ready(lease)
    lab.now = MIDNIGHT + 1800
    assert 1.0 == bill(lab.inputs(), "p").spent
