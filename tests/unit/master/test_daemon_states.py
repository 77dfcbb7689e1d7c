"""
The life of a daemon under its master: every way from one phase to another, and what holds on all of them.
"""

from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.retry.backoff import Backoff
from kettle.runtime import EXIT_RENEWED as SERVICES_EXIT
from kettle_services.master.domain import daemon
from kettle_services.master.domain.daemon import (
    ALIVE,
    EXIT_RENEWED,
    Ask,
    How,
    Phase,
    RestartRules,
    Step,
    SupervisedDaemon,
)

RULES = RestartRules(
    backoff=Backoff(constant=1, first=1, longest=3600),
    start=20,
    not_responding=10,
    graceful=30,
    fast=5,
    abort=3,
)
NOW = 1000.0


def at(phase: Phase, *, wanted: bool = True, asked: Ask | None = None, due: float = NOW) -> SupervisedDaemon:
    return SupervisedDaemon(phase=phase, wanted=wanted, asked=asked, due=due, began=NOW - 100, sign=NOW)


def seen(change: daemon.Change) -> tuple[Phase, bool, tuple[Step, ...]]:
    after, steps = change
    return after.phase, after.wanted, steps


@pytest.mark.parametrize("how", ["peaceful", "graceful", "fast"])
@pytest.mark.parametrize("phase", ["starting", "running", "standby"])
def test_off_asks_what_runs_to_end(phase: Phase, how: How) -> None:
    """A daemon that runs is asked to end in the way that was chosen."""
    assert ("stopping", False, (how,)) == seen(daemon.off(at(phase), how, now=NOW, rules=RULES))


@pytest.mark.parametrize("phase", ["waiting", "left", "off"])
def test_off_of_what_does_not_run_is_all(phase: Phase) -> None:
    """A daemon without a process is off at once, and nothing is asked of anybody."""
    assert ("off", False, ()) == seen(daemon.off(at(phase), "graceful", now=NOW, rules=RULES))


def test_off_during_the_launch_ends_it_as_soon_as_there_is_a_process() -> None:
    """What cannot be told anything yet is told when it can."""
    launching, steps = daemon.off(at("launching"), "fast", now=NOW, rules=RULES)
    assert ("launching", ()) == (launching.phase, steps)
    assert ("stopping", False, ("fast",)) == seen(daemon.launched(launching, now=NOW, rules=RULES))


@pytest.mark.parametrize(
    ("first", "then", "steps"),
    [
        ("peaceful", "graceful", ("graceful",)),
        ("peaceful", "fast", ("fast",)),
        ("graceful", "fast", ("fast",)),
        ("graceful", "peaceful", ()),
        ("fast", "graceful", ()),
        ("fast", "fast", ()),
    ],
)
def test_an_end_becomes_only_harsher(first: How, then: How, steps: tuple[Step, ...]) -> None:
    """Who is to end already is told only what is harsher than what it was told."""
    stopping, _ = daemon.off(at("running"), first, now=NOW, rules=RULES)
    assert ("stopping", False, steps) == seen(daemon.off(stopping, then, now=NOW, rules=RULES))


def test_whoever_does_not_end_gracefully_is_hurried_and_then_killed() -> None:
    """The deadlines are those of the settings: graceful, then fast, then killed, and killed again."""
    now, asked = NOW, list[tuple[float, Step]]()
    one, steps = daemon.off(at("running"), "graceful", now=now, rules=RULES)
    while now < NOW + 40:
        asked += [(now - NOW, step) for step in steps]
        now += 1
        one, steps = daemon.tick(one, now=now, looked=now - 1, period=1, rules=RULES)
    assert [(0, "graceful"), (30, "fast"), (35, "kill"), (38, "kill")] == asked


def test_a_peaceful_end_has_no_deadline() -> None:
    """A job that runs for a month is waited for."""
    one, _ = daemon.off(at("running"), "peaceful", now=NOW, rules=RULES)
    month = NOW + 2_600_000
    assert ("stopping", False, ()) == seen(
        daemon.tick(one, now=month, looked=month - 1, period=1, rules=RULES)
    )


def test_restart_starts_at_once_and_forgets_failures() -> None:
    """The end that was asked for is no failure: there is no wait."""
    one, steps = daemon.restart(
        msgspec.structs.replace(at("running"), failures=7), "graceful", now=NOW, rules=RULES
    )
    assert ("graceful",) == steps
    one = daemon.ended(one, 0, now=NOW, rules=RULES)
    assert SupervisedDaemon(phase="waiting", due=NOW) == one
    assert ("launching", True, ("start",)) == seen(
        daemon.tick(one, now=NOW, looked=NOW, period=1, rules=RULES)
    )


@pytest.mark.parametrize("phase", ["waiting", "left", "off"])
def test_restart_and_on_start_what_does_not_run(phase: Phase) -> None:
    """A daemon that waits, was switched off or given up is started now."""
    one = at(phase, wanted=phase != "off", due=NOW + 3000)
    assert SupervisedDaemon(phase="waiting", due=NOW) == daemon.on(one, now=NOW)[0]
    assert SupervisedDaemon(phase="waiting", due=NOW) == daemon.restart(one, "fast", now=NOW, rules=RULES)[0]


@pytest.mark.parametrize("phase", ["starting", "running", "standby"])
def test_on_leaves_alone_what_runs(phase: Phase) -> None:
    """`on` of a daemon that is on changes nothing."""
    assert (at(phase), ()) == daemon.on(at(phase), now=NOW)


def test_on_during_the_end_makes_it_a_restart() -> None:
    """A daemon that is being switched off and is wanted again is started when it has ended."""
    one, _ = daemon.off(at("running"), "graceful", now=NOW, rules=RULES)
    one, steps = daemon.on(one, now=NOW)
    assert ("stopping", ()) == (one.phase, steps)
    assert "waiting" == daemon.ended(one, 0, now=NOW, rules=RULES).phase


@pytest.mark.parametrize("phase", ["running", "standby"])
def test_silence_is_a_hang_whose_stacks_are_wanted(phase: Phase) -> None:
    """A daemon that is silent for too long is aborted, then killed, and started again with a wait."""
    one = msgspec.structs.replace(at(phase), sign=NOW - 11)
    one, steps = daemon.tick(one, now=NOW, looked=NOW - 1, period=1, rules=RULES)
    assert ("hung", ("abort",)) == (one.phase, steps)
    later = NOW + RULES.abort
    one, steps = daemon.tick(one, now=later, looked=later - 1, period=1, rules=RULES)
    assert ("hung", ("kill",)) == (one.phase, steps)
    one = daemon.ended(one, -9, now=later, rules=RULES)
    assert ("waiting", 1, later + 2) == (one.phase, one.failures, one.due)


def test_a_daemon_has_longer_to_start_than_to_answer() -> None:
    """Silence before it was ready is measured by the time for a start."""
    one = msgspec.structs.replace(at("starting"), sign=NOW - 15)
    assert "starting" == daemon.tick(one, now=NOW, looked=NOW - 1, period=1, rules=RULES)[0].phase
    one = msgspec.structs.replace(one, sign=NOW - 21)
    assert "hung" == daemon.tick(one, now=NOW, looked=NOW - 1, period=1, rules=RULES)[0].phase


def test_a_master_that_slept_accuses_nobody() -> None:
    """After a pause of the master itself everybody has the whole time again."""
    one = msgspec.structs.replace(at("running"), sign=NOW - 500)
    after, steps = daemon.tick(one, now=NOW, looked=NOW - 500, period=1, rules=RULES)
    assert ("running", NOW, ()) == (after.phase, after.sign, steps)


@pytest.mark.parametrize(
    ("status", "phase"), [(0, "waiting"), (1, "waiting"), (-11, "waiting"), (99, "left")]
)
def test_an_end_that_nobody_asked_for(status: int, phase: Phase) -> None:
    """Any end is followed by a start after a wait, unless its status says that this is of no use."""
    one = daemon.ended(at("running"), status, now=NOW, rules=RULES)
    assert (phase, 1) == (one.phase, one.failures)


def test_changed_settings_are_no_failure() -> None:
    """
    A service that ends to be started with other settings is started at once; both sides mean the same status.
    """
    one = daemon.ended(at("running"), EXIT_RENEWED, now=NOW, rules=RULES)
    assert ("waiting", 0, NOW) == (one.phase, one.failures, one.due)
    assert SERVICES_EXIT == EXIT_RENEWED


@pytest.mark.parametrize("phase", get_args(Phase))
def test_only_who_serves_is_told_to_renew(phase: Phase) -> None:
    """A daemon that is starting reads the new settings anyway; one that ends needs none."""
    assert (("renew",) if phase in {"running", "standby"} else ()) == daemon.renew(at(phase))[1]


def test_ready_counts_only_while_it_is_to_run() -> None:
    """A daemon that becomes ready while it is being ended does not run."""
    assert "running" == daemon.heard(at("starting"), now=NOW, ready=True, standby=False).phase
    assert "standby" == daemon.heard(at("running"), now=NOW, ready=True, standby=True).phase
    assert "stopping" == daemon.heard(at("stopping"), now=NOW, ready=True, standby=False).phase


HOWS = st.sampled_from(["peaceful", "graceful", "fast"])
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("off"), HOWS),
        st.tuples(st.just("restart"), HOWS),
        st.tuples(st.sampled_from(["on", "renew", "ready", "standby", "launched"]), st.none()),
        st.tuples(st.just("ended"), st.sampled_from([0, 1, 44, 75, 78, 99, -6, -9])),
        st.tuples(st.just("time"), st.floats(0.01, 50)),
    ),
    max_size=60,
)


class World:
    """A process beside the state machine, which does what it is told and notices what cannot be."""

    def __init__(self) -> None:
        self.now = NOW
        self.child = SupervisedDaemon(due=NOW)
        self.process = "none"
        self.harshest = -1

    def happen(self, event: str, argument: object) -> None:
        steps: tuple[Step, ...] = ()
        match event:
            case "off":
                self.child, steps = daemon.off(self.child, argument, now=self.now, rules=RULES)  # type: ignore[arg-type]
                assert not self.child.wanted
            case "restart":
                self.child, steps = daemon.restart(self.child, argument, now=self.now, rules=RULES)  # type: ignore[arg-type]
                assert self.child.wanted
            case "on":
                self.child, steps = daemon.on(self.child, now=self.now)
                assert self.child.wanted
            case "renew":
                self.child, steps = daemon.renew(self.child)
            case "ready" | "standby" if self.process == "there":
                self.child = daemon.heard(self.child, now=self.now, ready=True, standby=event == "standby")
            case "launched" if self.process == "coming":
                self.process = "there"
                self.child, steps = daemon.launched(self.child, now=self.now, rules=RULES)
            case "ended" if self.process != "none":
                self.process, self.harshest = "none", -1
                self.child = daemon.ended(self.child, int(str(argument)), now=self.now, rules=RULES)
            case "time":
                self.now += float(str(argument))
                self.child, steps = daemon.tick(
                    self.child, now=self.now, looked=self.now - 0.5, period=0.5, rules=RULES
                )
            case _:
                return
        for step in steps:
            self._do(step)

    def _do(self, step: Step) -> None:
        if step == "start":
            assert self.process == "none", "started although it runs"
            assert self.child.wanted, "started although it is switched off"
            self.process = "coming"
            return
        assert self.process == "there", f"{step} although there is no process"
        if step in get_args(Ask):
            harshness = get_args(Ask).index(step)
            assert harshness > self.harshest or step == "kill", f"{step} is milder than before"
            self.harshest = harshness

    def holds(self) -> None:
        assert (self.child.phase in ALIVE) == (self.process == "there")
        assert (self.child.phase == "launching") == (self.process == "coming")
        assert self.child.phase != "off" or not self.child.wanted
        assert self.child.wanted or self.child.phase in {"off", "launching", "stopping", "hung"}


@given(EVENTS)
def test_whatever_happens_there_is_one_process_and_it_is_wanted(events: list[tuple[str, object]]) -> None:
    """
    Never two processes, never a signal to none, never a start of what is switched off, never milder than before.
    """
    world = World()
    for event, argument in events:
        world.happen(event, argument)
        world.holds()


@given(EVENTS)
def test_what_is_switched_off_ends_at_last(events: list[tuple[str, object]]) -> None:
    """
    After any past, a daemon that is switched off fast is killed within its deadlines if nothing else ends it, and stays off.
    """
    world = World()
    for event, argument in events:
        world.happen(event, argument)
    world.happen("off", "fast")
    world.happen("launched", None)
    for _ in range(10):
        world.happen("time", 1.0)
    assert world.process == "none" or world.harshest == get_args(Ask).index("kill")
    world.happen("ended", -9)
    for _ in range(100):
        world.happen("time", 50.0)
    assert ("off", "none") == (world.child.phase, world.process)
