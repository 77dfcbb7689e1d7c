"""
Machines of static pools: what each stimulus comes to in each state, and what no order of stimuli ever does.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle_services.scaler.domain.hosts.host import Host, fold
from kettle_services.scaler.domain.hosts.stepping import (
    Answers,
    Dropped,
    Emptied,
    Fence,
    Heard,
    HostAct,
    HostTimers,
    Idle,
    Mended,
    Needed,
    Occupied,
    Release,
    Silent,
    Stimulus,
    Switch,
    Switched,
    TimePasses,
    step,
)
from kettle_wire.events import tag_of
from kettle_wire.events.host import HostEvent
from kettle_wire.events.lease import Demand
from kettle_wire.worker_pools import Hibernation, HostState

NOW: Final = 1_790_000_000.0
TIMERS: Final = HostTimers()
ATTEMPT: Final = 4
DEMAND: Final = [Demand("ann@pool", "schedd", "3", 2)]

STIMULI: Final[dict[str, Stimulus]] = {
    "idle": Idle(Hibernation.S3, "plan 1", []),
    "needed": Needed(DEMAND, "plan 1"),
    "emptied": Emptied(),
    "occupied": Occupied("the machine has 1 claim(s)"),
    "heard": Heard(),
    "answers": Answers(),
    "silent": Silent(),
    "asleep as asked": Switched("sleep", ATTEMPT),
    "not put to sleep": Switched("sleep", ATTEMPT, "no route"),
    "woken as asked": Switched("wake", ATTEMPT),
    "not woken": Switched("wake", ATTEMPT, "no route"),
    "an old answer": Switched("wake", ATTEMPT - 1, "no route"),
    "time": TimePasses(),
    "mended": Mended("grace"),
    "dropped": Dropped("its pool has it no more"),
}


def host(state: HostState, **more: object) -> Host:
    made = Host(machine="desk1", pool="desks", offer="desk", state=state, since=NOW - 10, attempt=ATTEMPT)
    until = NOW + 60 if state in {HostState.HIBERNATING, HostState.WAKING} else 0.0
    return msgspec.structs.replace(made, **{"until": until, **more})


HOSTS: Final[dict[str, Host]] = {
    "awake": host(HostState.AWAKE),
    "awake, tried lately": host(HostState.AWAKE, again=NOW + 60),
    "hibernating": host(HostState.HIBERNATING),
    "hibernating, late": host(HostState.HIBERNATING, until=NOW),
    "fenced": host(HostState.HIBERNATING, fenced=True),
    "fenced, late": host(HostState.HIBERNATING, fenced=True, until=NOW),
    "asleep": host(HostState.ASLEEP),
    "asleep, tried lately": host(HostState.ASLEEP, failures=1, again=NOW + 60),
    "waking": host(HostState.WAKING),
    "waking, late": host(HostState.WAKING, until=NOW),
    "waking, late again": host(HostState.WAKING, failures=2, until=NOW),
    "broken": host(HostState.BROKEN, failures=3),
}
FENCE: Final = "Fence"
RELEASE: Final = "Release"
EXPECTED: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "awake": {
        "idle": ("host.hibernating/1", FENCE),
        "emptied": ("", RELEASE),
        "silent": ("host.asleep/1", ""),
        "dropped": ("host.forgotten/1", ""),
    },
    "awake, tried lately": {
        "emptied": ("", RELEASE),
        "silent": ("host.asleep/1", ""),
        "dropped": ("host.forgotten/1", ""),
    },
    "hibernating": {
        "emptied": ("host.fenced/1", "Switch sleep"),
        "occupied": ("host.awake/1", ""),
        "silent": ("host.asleep/1", ""),
        "not put to sleep": ("host.awake/1", RELEASE),
        "time": ("", FENCE),
        "dropped": ("host.forgotten/1", RELEASE),
    },
    "hibernating, late": {
        "emptied": ("host.fenced/1", "Switch sleep"),
        "occupied": ("host.awake/1", ""),
        "silent": ("host.asleep/1", ""),
        "not put to sleep": ("host.awake/1", RELEASE),
        "time": ("host.awake/1", RELEASE),
        "dropped": ("host.forgotten/1", RELEASE),
    },
    "fenced": {
        "silent": ("host.asleep/1", ""),
        "not put to sleep": ("host.awake/1", RELEASE),
        "time": ("", FENCE),
        "dropped": ("host.forgotten/1", RELEASE),
    },
    "fenced, late": {
        "silent": ("host.asleep/1", ""),
        "not put to sleep": ("host.awake/1", RELEASE),
        "time": ("host.awake/1", RELEASE),
        "dropped": ("host.forgotten/1", RELEASE),
    },
    "asleep": {
        "needed": ("host.waking/1", "Switch wake"),
        "emptied": ("", RELEASE),
        "heard": ("", RELEASE),
        "answers": ("host.awake/1", ""),
        "dropped": ("host.forgotten/1", ""),
    },
    "asleep, tried lately": {
        "emptied": ("", RELEASE),
        "heard": ("", RELEASE),
        "answers": ("host.awake/1", ""),
        "dropped": ("host.forgotten/1", ""),
    },
    "waking": {
        "emptied": ("", RELEASE),
        "heard": ("", RELEASE),
        "answers": ("host.awake/1", ""),
        "not woken": ("host.not_woken/1", ""),
        "time": ("", RELEASE),
        "dropped": ("host.forgotten/1", ""),
    },
    "waking, late": {
        "emptied": ("", RELEASE),
        "heard": ("", RELEASE),
        "answers": ("host.awake/1", ""),
        "not woken": ("host.not_woken/1", ""),
        "time": ("host.not_woken/1", ""),
        "dropped": ("host.forgotten/1", ""),
    },
    "waking, late again": {
        "emptied": ("", RELEASE),
        "heard": ("", RELEASE),
        "answers": ("host.awake/1", ""),
        "not woken": ("host.broken/1", ""),
        "time": ("host.broken/1", ""),
        "dropped": ("host.forgotten/1", ""),
    },
    "broken": {
        "emptied": ("", RELEASE),
        "heard": ("", RELEASE),
        "answers": ("host.awake/1", ""),
        "mended": ("host.mended/1", ""),
        "dropped": ("host.forgotten/1", ""),
    },
}
"""What is recorded and done; what is left out comes to nothing."""


def said(acts: Sequence[HostAct]) -> str:
    return ", ".join(f"Switch {act.to}" if isinstance(act, Switch) else type(act).__name__ for act in acts)


@pytest.mark.parametrize("state", HOSTS)
@pytest.mark.parametrize("stimulus", STIMULI)
def test_each_stimulus_in_each_state(state: str, stimulus: str) -> None:
    """Every pair has its answer, most of them none."""
    taken = step(HOSTS[state], STIMULI[stimulus], NOW, TIMERS)
    events = ", ".join(map(tag_of, taken.events))
    assert EXPECTED[state].get(stimulus, ("", "")) == (events, said(taken.acts))
    folded: Host | None = HOSTS[state]
    for event in taken.events:
        folded = fold(folded, event, NOW)  # which takes it
    assert (folded is None) == (stimulus == "dropped")


def test_a_machine_that_does_not_wake_is_tried_later_and_then_given_up() -> None:
    """Each pause is longer than the one before, and the third failure is the last."""
    one, now, pauses = HOSTS["asleep"], NOW, list[float]()
    for _ in range(TIMERS.tries):
        (waking,) = step(one, STIMULI["needed"], now, TIMERS).events
        one = folded(one, waking, now)
        now += TIMERS.wake + 1
        (failed,) = step(one, TimePasses(), now, TIMERS).events
        one = folded(one, failed, now)
        assert not step(one, STIMULI["needed"], now, TIMERS).events  # not before its time
        pauses.append(one.again - now)
        now = max(now, one.again)
    first, second, _ = pauses
    assert 0 < first < second
    assert (HostState.BROKEN, 3) == (one.state, one.failures)
    assert "did not answer within 181 s" in one.words


def folded(before: Host, event: HostEvent, at: float) -> Host:
    after = fold(before, event, at)
    assert after is not None
    return after


MOVES: Final = st.lists(
    st.tuples(st.sampled_from(sorted(STIMULI)), st.sampled_from([0.0, 1.0, 200.0, 4000.0])), max_size=40
)


@given(MOVES)
def test_nothing_is_switched_twice_for_one_intent(moves: list[tuple[str, float]]) -> None:
    """
    Whatever is seen in whatever order: its provider is asked once for each attempt, only after the attempt was recorded, and a machine is
    put to sleep only when its startd has said that it takes no more jobs.
    """
    one: Host | None = Host(machine="desk1", pool="desks", offer="desk")
    now, asked = NOW, set[tuple[str, int]]()
    for name, seconds in moves:
        now += seconds
        before = one or Host(machine="desk1", pool="desks", offer="desk")
        stimulus = STIMULI[name]
        if isinstance(stimulus, Switched):
            stimulus = msgspec.structs.replace(stimulus, attempt=before.attempt)
        taken = step(before, stimulus, now, TIMERS)
        for event in taken.events:
            one = fold(one, event, now) if one is not None or tag_of(event) in FIRST else one
        for act in taken.acts:
            if isinstance(act, Switch):
                assert one is not None
                assert one.attempt == act.attempt
                assert (act.to, act.attempt) not in asked
                assert one.state is (HostState.WAKING if act.to == "wake" else HostState.HIBERNATING)
                assert act.to == "wake" or (one.fenced and isinstance(stimulus, Emptied))
                asked.add((act.to, act.attempt))
            elif isinstance(act, Fence):
                assert one is not None
                assert one.state is HostState.HIBERNATING
            else:
                assert isinstance(act, Release)
        if one is None:  # another life of it counts from the beginning
            asked.clear()


FIRST: Final = frozenset({"host.hibernating/1", "host.asleep/1"})
