"""
What is true of any period that is played: no slot has more than it has, no job runs where it may not, and nothing is lost.
"""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kettle.classad import ClassAd, matches
from kettle.testing.invented_history import SCHEDD, SHARDS, InventedHistory, moment
from kettle_services.negotiator.settings import NegotiatorSettings
from kettle_services.simulator.comparison import compare
from kettle_services.simulator.domain.changed_machines import with_machines
from kettle_services.simulator.domain.period import Period
from kettle_services.simulator.domain.pool_rules import PoolRules
from kettle_services.simulator.domain.recording import Recording
from kettle_services.simulator.domain.simulation import PeriodSimulation
from kettle_services.simulator.domain.submitter_sums import Tally
from kettle_services.simulator.what_if_file import rules
from kettle_wire.ads import Expr
from kettle_wire.events import JobHeld, JobReleased, JobRemoved

UNTIL = 600.0
TIMES = st.integers(0, 500)


class Submission(msgspec.Struct, frozen=True):
    owner: str
    at: int
    jobs: int
    seconds: int
    cpus: int
    memory: int
    system: str


JOBS = st.builds(
    Submission,
    owner=st.sampled_from(["ada", "bob", "eve"]),
    at=TIMES,
    jobs=st.integers(1, 4),
    seconds=st.integers(1, 200),
    cpus=st.integers(1, 3),
    memory=st.sampled_from([100, 1000, 3000]),
    system=st.sampled_from(["LINUX", "PLAN9"]),
)
MACHINES = st.fixed_dictionaries(
    {"cpus": st.integers(1, 4), "memory": st.sampled_from([1024, 4096]), "at": st.integers(-10, 300)}
)
ACTIONS = st.sampled_from(["", "hold", "hold release", "hold release remove", "remove"])
EVENTS = {"hold": JobHeld(code=1, reason=""), "release": JobReleased(), "remove": JobRemoved()}


def made(preempt: bool, factors: dict[str, float], worklife: float) -> PoolRules:
    settings = NegotiatorSettings(
        preemption_requirements="RemoteUserPrio > TARGET.SubmitterUserPrio" if preempt else "",
        allow_pslot_preemption=preempt,
        priority_halflife=600.0,
    )
    return rules(settings, worklife=worklife, factors=factors)


RULES = st.builds(
    made,
    st.booleans(),
    st.dictionaries(st.sampled_from(["ada", "bob"]), st.sampled_from([1.0, 100.0, 1e5]), max_size=2),
    st.sampled_from([0.0, 100.0, 1200.0]),
)


@st.composite
def pasts(draw: st.DrawFn) -> Period:
    past = InventedHistory()
    for number, machine in enumerate(draw(st.lists(MACHINES, min_size=1, max_size=3))):
        past.machine(f"m{number}", **machine)
        if draw(st.booleans()):
            past.leaves(f"m{number}", machine["at"] + draw(st.integers(1, 400)))
    for cluster, job in enumerate(draw(st.lists(JOBS, min_size=1, max_size=5)), 1):
        past.submit(
            job.owner,
            at=float(job.at),
            jobs=job.jobs,
            seconds=job.seconds,
            RequestCpus=job.cpus,
            RequestMemory=job.memory,
            Requirements=Expr(f'TARGET.OpSys == "{job.system}" && TARGET.Memory >= RequestMemory'),
        )
        at = float(job.at)
        for action in draw(ACTIONS).split():
            at += draw(st.integers(1, 100))
            past.record(at, SCHEDD, f"job/{cluster}.0", EVENTS[action])
    recording = Recording(moment(-5), moment(UNTIL), SHARDS)
    for frame in past.frames():
        recording.feed(frame)
    return with_machines(recording.period(), said={"UserPreemption": True})


class Watched(PeriodSimulation):
    """Looks at all slots and claims after each cycle."""

    def _cycle(self) -> None:
        super()._cycle()
        capacity = {
            f"slot{slot.number}@{machine.name}": slot.amounts
            for machine in self.period.machines.values()
            for slot in machine.slots
        }
        had = {name: dict.fromkeys(amounts, 0) for name, amounts in capacity.items()}
        claims = {part.claim: part for part in self.startds.parts}
        for part in claims.values():
            for name, amount in part.amounts.items():
                had[part.whole][name] += amount
        for name, amounts in had.items():
            assert all(amounts[each] <= capacity[name][each] for each in amounts), name
            if name.partition("@")[2] in self.startds.machines:
                left = self.startds.left(name)
                assert {each: capacity[name][each] - amounts[each] for each in amounts} == left
        for schedd in self.running.schedds.values():
            assert set(schedd.queue.claims) == set(claims)
            for claim in schedd.queue.claims.values():
                assert claim.job is not None
                job = ClassAd.from_wire(schedd.queue.ad(claim.job))
                assert matches(job, ClassAd.from_wire(claim.granted.slot_ad))


def told(tally: Tally) -> object:
    return tally.starts, tally.sums({name: [name] for name in tally.submitters})


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(period=pasts(), by=RULES)
def test_no_slot_has_more_than_it_has_and_no_job_runs_where_it_may_not(period: Period, by: PoolRules) -> None:
    """
    After each cycle: what claims have of a slot and what is left of it are what it has; each claim has a job, which its slot
    and which suits its slot; the schedds' claims are those of the startds. In the end usage is the sum of what each claim had
    for as long as it had it, and the same period gives the same again.
    """
    simulation = Watched(period, by)
    tally = simulation.run()
    hours = sum(one.core_hours for one in tally.sums({name: [name] for name in tally.submitters}).values())
    assert abs(hours - tally.core_hours) < 1e-9
    moments = [moment(second / 4 - 5) for second in range(round(4 * (UNTIL + 5)))]
    sampled = sum(sum(tally.usage(name, moments)) for name in tally.submitters) / 4
    assert abs(sampled / 3600 - tally.weighted_hours) < 0.02 + 0.01 * tally.weighted_hours
    assert told(tally) == told(PeriodSimulation(period, by).run())


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(period=pasts(), by=RULES)
def test_nothing_is_different_without_a_change(period: Period, by: PoolRules) -> None:
    """
    The replay and the changed one are the same for all, each job of everybody's is counted once, and the answer is one that programs get.
    """
    answer = compare(period, by, with_machines(period), by, changes=[], step=1_000_000)
    for one in [*answer.submitters, answer.total]:
        assert one.replayed == one.changed
    assert answer.usage["replayed"] == answer.usage["changed"]
    assert answer.total.replayed.begun == sum(one.replayed.begun for one in answer.submitters)
    assert answer == msgspec.json.decode(msgspec.json.encode(answer), type=type(answer))
