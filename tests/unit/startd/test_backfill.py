"""
Every transition of a slot that does something for its owner, on the pure state machine; the numbers are HTCondor's.
"""

from typing import Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle_services.startd.domain.ads import slot_ad
from kettle_services.startd.domain.policy import backfill
from kettle_services.startd.domain.policy.backfill import BackfillEvaluation, Order
from kettle_services.startd.domain.slots.slot import whole_machine
from kettle_services.startd.domain.state.changes import Draining
from kettle_services.startd.domain.state.claim import DrainInForce, Now
from kettle_services.startd.domain.state.machine import Backfill, Facts, Machine
from kettle_services.startd.domain.state.policy_expressions import PolicyExpressions
from kettle_wire.commands.startd import ClaimKey

from .hosts import NOW, TOTAL, claimed, machine

IDLE = Backfill("Idle", 4000.0)
BUSY = Backfill("Busy", 4000.0, due=900.0, beside=frozenset({"a"}))
KILLING = Backfill("Killing", 4000.0, due=900.0)
FREE = BackfillEvaluation(room=True, start=False, evict=False, beside=frozenset())
STARTS = msgspec.structs.replace(FREE, start=True)
EVICTS = msgspec.structs.replace(STARTS, evict=True)
TAKEN = msgspec.structs.replace(STARTS, room=False)
BESIDE = msgspec.structs.replace(STARTS, beside=frozenset({"a"}))
ANOTHER = msgspec.structs.replace(STARTS, beside=frozenset({"a", "b"}))
Activity = Literal["Idle", "Busy", "Killing"] | None


@pytest.mark.parametrize(
    ("known", "says", "activity", "order"),
    [
        pytest.param(None, STARTS, "Idle", None, id="7 Unclaimed -> Backfill/Idle: START_BACKFILL"),
        pytest.param(None, FREE, None, None, id="not without START_BACKFILL"),
        pytest.param(None, EVICTS, None, None, id="nor while EVICT_BACKFILL"),
        pytest.param(None, TAKEN, None, None, id="nor in a slot that somebody wants"),
        pytest.param(IDLE, STARTS, "Busy", "start", id="Idle -> Busy: it is started"),
        pytest.param(
            msgspec.structs.replace(IDLE, due=2000.0), STARTS, "Idle", None, id="not before its time"
        ),
        pytest.param(IDLE, FREE, None, None, id="Idle -> Unclaimed: START_BACKFILL is false again"),
        pytest.param(IDLE, EVICTS, None, None, id="Idle -> Unclaimed: EVICT_BACKFILL"),
        pytest.param(IDLE, TAKEN, None, None, id="Idle -> Owner, Claimed, Drained"),
        pytest.param(BUSY, FREE, "Busy", None, id="START_BACKFILL does not end what runs"),
        pytest.param(BUSY, BESIDE, "Busy", None, id="nor do claims that were there before"),
        pytest.param(BUSY, EVICTS, "Killing", "kill", id="Busy -> Killing: EVICT_BACKFILL"),
        pytest.param(BUSY, TAKEN, "Killing", "kill", id="Busy -> Killing: owner, claim of it all, drain"),
        pytest.param(BUSY, ANOTHER, "Killing", "kill", id="Busy -> Killing: a claim of a part"),
        pytest.param(KILLING, STARTS, "Killing", None, id="Killing lasts until it is gone"),
        pytest.param(KILLING, TAKEN, "Killing", None, id="and is ordered once"),
    ],
)
def test_looks(
    known: Backfill | None, says: BackfillEvaluation, activity: Activity, order: Order | None
) -> None:
    """What follows from where a slot is and what the machine says of it."""
    after, ordered = backfill.evaluate(known, says, NOW)
    assert (activity, order) == (after.activity if after is not None else None, ordered)


def test_ends() -> None:
    """
    26-32: what ends by itself is started again, at once or, if it failed soon, after a while; what was killed is gone.
    """
    assert Backfill("Idle", NOW.time, due=NOW.clock) == backfill.ended(BUSY, NOW)
    assert None is backfill.ended(KILLING, NOW)

    pauses: list[float] = []
    known = msgspec.structs.replace(BUSY, due=NOW.clock - 1)
    for _ in range(12):
        idle = backfill.ended(known, NOW)
        assert idle is not None
        pauses.append(idle.due - NOW.clock)
        known = msgspec.structs.replace(known, failed=idle.failed)
    assert [10.0, 20.0, 40.0, 80.0, 160.0, 320.0, *[600.0] * 6] == pauses


_says = st.builds(
    BackfillEvaluation,
    room=st.booleans(),
    start=st.booleans(),
    evict=st.booleans(),
    beside=st.frozensets(st.sampled_from("ab")),
)


@given(steps=st.lists(st.one_of(_says, st.none()), max_size=30))
def test_one_thing_runs_at_a_time(steps: list[BackfillEvaluation | None]) -> None:
    """
    Whatever happens, nothing is started in a slot before what ran there is gone, nor killed twice, and what somebody wants
    is on its way out.
    """
    known: Backfill | None = None
    runs = dying = False
    for tick, says in enumerate(steps):
        now = Now(1000.0 * tick, 1000.0 * tick)
        if says is None:
            if runs and known is not None:
                known, runs, dying = backfill.ended(known, now), False, False
            continue
        known, order = backfill.evaluate(known, says, now)
        assert not (order == "start" and (runs or not says.room or says.evict))
        assert not (order == "kill" and (dying or not runs))
        runs, dying = runs or order == "start", dying or order == "kill"
        assert runs == (known is not None and known.activity in {"Busy", "Killing"})
        assert dying or not runs or (says.room and not says.evict)


def filling(*, partitionable: bool) -> Machine:
    policy = PolicyExpressions(
        {"START_BACKFILL": "Cpus > 1", "EVICT_BACKFILL": 'Activity == "Busy" && Cpus < 2'}
    )
    (slot,) = whole_machine(TOTAL)
    slots = (msgspec.structs.replace(slot, partitionable=partitionable),)
    return Machine(
        Facts(name="host", total=TOTAL, detected=TOTAL, slots=slots, policy=policy), capability="right"
    )


def test_what_a_machine_says_of_its_slots() -> None:
    """
    Its expressions see the slot; a slot that is claimed as a whole, owned or drained has no room, a partitionable one as
    long as something is left of it.
    """
    parts, whole = filling(partitionable=True), filling(partitionable=False)
    (slot,), (static,) = parts.facts.slots, whole.facts.slots
    assert STARTS == backfill.asked(parts, slot, NOW) == backfill.asked(whole, static, NOW)

    claimed(whole)
    assert not backfill.asked(whole, static, NOW).room
    claimed(parts, RequestCpus=3)
    assert (True, False, frozenset({"c1"})) == (
        (says := backfill.asked(parts, slot, NOW)).room,
        says.start,
        says.beside,
    )
    parts.backfill[1] = BUSY
    assert backfill.asked(parts, slot, NOW).evict
    parts.owned = frozenset({1})
    assert not backfill.asked(parts, slot, NOW).room
    parts.owned = frozenset()
    parts.apply(Draining(DrainInForce(id="d", speed="fast", at=1.0, start="true")))
    assert not backfill.asked(parts, slot, NOW).room


def test_a_slot_shows_it_and_is_offered_all_the_same() -> None:
    """With HTCondor's names; a claim is granted as if nothing ran."""
    host = machine()
    (slot,) = host.facts.slots
    host.backfill[1] = BUSY
    ad = slot_ad(host, slot, now=NOW.time)

    assert ("Backfill", "Busy", 4000) == (ad["State"], ad["Activity"], ad["EnteredCurrentActivity"])
    assert False is not ad["Requirements"]
    assert ["c1"] == [grant.claim for grant in claimed(host, ClaimKey("c1", "s")).granted]
