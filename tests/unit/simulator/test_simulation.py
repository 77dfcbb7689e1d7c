"""Periods that are played again: who begins when, by figures that are worked out by hand."""

import msgspec
import pytest

from kettle.testing.invented_history import SCHEDD, SHARDS, InventedHistory, moment
from kettle_services.negotiator.settings import NegotiatorSettings
from kettle_services.schedd.settings import ScheddSettings
from kettle_services.simulator.comparison import compare, same_order
from kettle_services.simulator.domain.changed_machines import Addition, with_machines
from kettle_services.simulator.domain.period import Period, really
from kettle_services.simulator.domain.pool_rules import PoolRules
from kettle_services.simulator.domain.recording import Recording
from kettle_services.simulator.domain.simulation import PeriodSimulation
from kettle_services.simulator.domain.submitter_sums import Sums
from kettle_services.simulator.what_if_file import WORKLIFE, rules
from kettle_wire.ads import Expr
from kettle_wire.events import JobCheckpointed, JobHeld, JobReleased, JobRemoved
from kettle_wire.jobs import JobId

USUAL = rules(NegotiatorSettings(), worklife=0.0, factors={})


def period(past: InventedHistory, until: float = 3600.0) -> Period:
    recording = Recording(moment(-5), moment(until), SHARDS)
    for frame in past.frames():
        recording.feed(frame)
    return recording.period()


def play(past: InventedHistory, by: PoolRules = USUAL, until: float = 3600.0) -> dict[str, Sums]:
    tally = PeriodSimulation(period(past, until), by).run()
    return tally.sums({name: [name] for name in tally.submitters})


def starts(past: InventedHistory, by: PoolRules = USUAL, until: float = 3600.0) -> dict[str, float]:
    tally = PeriodSimulation(period(past, until), by).run()
    return {str(job): (at - moment(0)) / 1e6 for (_, job), at in tally.starts.items()}


def test_waits_and_usage_are_sums_of_what_ran() -> None:
    """
    Three jobs of 60 s on one core begin at 0, 60 and 120 s: the median wait is 60 s, the 90th percentile the third of
    three, 120 s, the mean 180/3. They used 3 * 60 s of one core, 0.05 hours, which is all that was used.
    """
    past = InventedHistory()
    past.machine("m", cpus=1)
    past.submit("ada", jobs=3, seconds=60)
    found = play(past)["ada"]

    assert (3, 3, 0, 0) == (found.begun, found.ended, found.waiting, found.preempted)
    assert (60.0, 120.0, 60.0) == (found.wait_median, found.wait_p90, found.wait_mean)
    assert (0.05, 0.05, 1.0) == (found.core_hours, found.weighted_hours, found.share)


def test_who_has_the_better_factor_goes_first() -> None:
    """
    One core, two submitters with two jobs of 60 s. Bob's effective priority is 0.5 * 10, Ada's 0.5 * 1000: his share is 100/101
    of one core, so he is served as long as he has none. He waits 0 and 60 s, she 120 and 180. Without the factor
    Ada, who is first by name, waits 0 s, and they take turns.
    """
    past = InventedHistory()
    past.machine("m", cpus=1)
    past.submit("ada", jobs=2)
    past.submit("bob", jobs=2)
    found = play(past, msgspec.structs.replace(USUAL, prio_factors={"bob": 10.0}))
    assert (30.0, 150.0) == (found["bob"].wait_mean, found["ada"].wait_mean)

    usual = play(past)
    assert (60.0, 120.0) == (usual["ada"].wait_mean, usual["bob"].wait_mean)


def test_a_recorded_factor_counts_from_when_it_was_set() -> None:
    """The factor is set in the log after the first job began; one that is asked for comes before it."""
    past = InventedHistory()
    past.machine("m", cpus=1)
    past.submit("ada", jobs=2)
    past.submit("bob", jobs=2)
    past.factor("bob", 10.0, at=30.0)
    assert {"1.0": 0.0, "2.0": 60.0, "2.1": 120.0, "1.1": 180.0} == starts(past)
    asked = msgspec.structs.replace(USUAL, prio_factors={"bob": 1e6})
    assert {"1.0": 0.0, "1.1": 60.0, "2.0": 120.0, "2.1": 180.0} == starts(past, asked)


def test_a_job_takes_what_it_took() -> None:
    """
    What ran for 100 s takes 100 s; of its cluster, one that never ran takes as long, although it would be allowed 60 s.
    On two cores of which one was used the second begins at once.
    """
    past = InventedHistory()
    past.machine("m", cpus=4)
    cluster = past.submit("ada", jobs=2)
    past.ran(cluster, 0, "ada", "slot1_1@m", 50.0, 150.0)
    found = period(past, 160.0)
    tally = PeriodSimulation(found, USUAL).run()
    (sums,) = tally.sums({"ada": ["ada"]}).values()
    assert (2, 2, 0.0) == (sums.begun, sums.ended, sums.wait_mean)
    assert 200 / 3600 == sums.core_hours
    assert {"job/1.1"} == found.works[SCHEDD].estimated
    real = really(found).sums({"ada": ["ada"]})["ada"]
    assert (1, 1, 1, 50.0) == (real.begun, real.ended, real.waiting, real.wait_mean)
    assert 100 / 3600 == real.core_hours


def test_what_ran_when_the_period_began_goes_on() -> None:
    """
    It began 35 s before the period and took 100 s, so its four cores are free after 65 s of it, at 60 s; it is no job that begins
    in the period, and 4 * 65 s of it count.
    """
    past = InventedHistory()
    past.machine("m", cpus=4)
    old = past.submit("ada", at=-50.0, RequestCpus=4)
    past.ran(old, 0, "ada", "slot1_1@m", -40.0, 60.0, Cpus=4, TotalSlotCpus=4, SlotWeight=4)
    past.submit("bob", at=10.0, RequestCpus=4)
    tally = PeriodSimulation(period(past), USUAL).run()
    assert {JobId(2, 0): moment(60)} == {job: at for (_, job), at in tally.starts.items()}
    ada = tally.sums({"ada": ["ada"]})["ada"]
    assert (0, 1, 260 / 3600) == (ada.begun, ada.ended, ada.core_hours)


def test_people_hold_release_and_remove_when_they_did() -> None:
    """
    One core, jobs of 60 s. The first is held while it runs, at 20 s, and loses what it has done; the second begins
    then. The first is released at 30 s and begins again at 80 s; the third is removed at 70 s, before it could begin.
    """
    past = InventedHistory()
    past.machine("m", cpus=1)
    past.submit("ada", jobs=3)
    past.record(20.0, SCHEDD, "job/1.0", JobHeld(code=1, reason="wait"))
    past.record(30.0, SCHEDD, "job/1.0", JobReleased())
    past.record(70.0, SCHEDD, "job/1.2", JobRemoved())
    found = play(past)["ada"]
    assert (2, 2, 1, 0) == (found.begun, found.ended, found.preempted, found.waiting)
    assert 140 / 3600 == pytest.approx(found.core_hours)


def test_what_is_preempted_loses_what_was_not_saved() -> None:
    """
    Ada has two cores with two jobs of 100 s when Bob, whose share is 1.998 of them, comes at 50 s with one of 60 s. One
    of hers begins again when the other ends, at 100 s: she had a core for 100 + 50 + 100 s. With recorded checkpoints
    every 20 s on average 40 s are saved, and it is 100 + 50 + 60 s.
    """
    settings = NegotiatorSettings(preemption_requirements="RemoteUserPrio > TARGET.SubmitterUserPrio * 1.2")
    by = rules(settings, worklife=0.0, factors={"bob": 1.0})

    def had(past: InventedHistory) -> float:
        found = with_machines(period(past), said={"UserPreemption": True})
        tally = PeriodSimulation(found, by).run()
        sums = tally.sums({"ada": ["ada"]})["ada"]
        assert (2, 2, 1) == (sums.begun, sums.ended, sums.preempted)
        assert moment(50) == tally.starts["ap", JobId(2, 0)]
        return sums.core_hours * 3600

    past = InventedHistory()
    past.machine("m", cpus=2)
    past.submit("ada", jobs=2, seconds=100)
    past.submit("bob", at=50.0)
    assert 250.0 == pytest.approx(had(past))
    for proc in range(2):
        past.ran(1, proc, "ada", f"slot1_{proc + 1}@m", 3700.0, 3800.0, TotalCpus=2)
        past.record(3760.0, SCHEDD, f"job/1.{proc}", JobCheckpointed(attempt=1, number=3))
    assert 210.0 == pytest.approx(had(past))


def test_a_claim_takes_jobs_until_its_worklife_is_over() -> None:
    """
    One core, ten jobs of 60 s each. Ada's first claim takes jobs until one ends after more than 150 s, at 180 s; then it is
    Bob's turn. With one job for each claim it is his after 60 s.
    """
    past = InventedHistory()
    past.machine("m", cpus=1)
    past.submit("ada", jobs=10)
    past.submit("bob", jobs=10)
    assert 180.0 == starts(past, msgspec.structs.replace(USUAL, worklife=150.0))["2.0"]
    assert 60.0 == starts(past)["2.0"]
    assert WORKLIFE == ScheddSettings().claim_worklife


def test_groups_have_their_quotas() -> None:
    """
    Four cores; physics has a quota of 1 and takes no surplus: of its four jobs of 60 s one runs at a time, the last begins at
    180 s.
    """
    past = InventedHistory()
    past.machine("m", cpus=4)
    past.submit("eve", jobs=4, AccountingGroup="physics.eve", AcctGroup="physics", AcctGroupUser="eve")
    assert {0.0} == set(starts(past).values())
    settings = msgspec.convert({"groups": {"physics": {"quota": 1}}}, NegotiatorSettings)
    found = starts(past, rules(settings, worklife=0.0, factors={}))
    assert [0.0, 60.0, 120.0, 180.0] == sorted(found.values())


def test_more_machines_and_fewer() -> None:
    """
    Two machines of one core, four jobs of 60 s: two begin at 0 and two at 60 s. With twice as many all begin at 0, with half
    of them one at a time. Two cores more: all at once. A machine that leaves at 30 s takes its job with it, which begins
    again at 60 s, before the third and the fourth.
    """
    past = InventedHistory()
    past.machine("a", cpus=1)
    past.machine("b", cpus=1)
    past.submit("ada", jobs=4)

    def begun(found: Period) -> list[float]:
        return sorted((at - moment(0)) / 1e6 for at in PeriodSimulation(found, USUAL).run().starts.values())

    assert [0, 0, 60, 60] == begun(period(past))
    assert [0, 0, 0, 0] == begun(with_machines(period(past), scale=2.0))
    assert [0, 60, 120, 180] == begun(with_machines(period(past), scale=0.5))
    more = with_machines(period(past), add=[Addition(count=1, cpus=2, memory=4096)])
    assert [0, 0, 0, 0] == begun(more)
    past.leaves("b", 30.0)
    assert [0, 0, 120, 180] == begun(period(past))


def test_a_machine_takes_no_job_that_its_start_refuses() -> None:
    """With START of all machines changed Bob's job waits to the end."""
    past = InventedHistory()
    past.machine("m", cpus=2)
    past.submit("ada")
    past.submit("bob")
    found = with_machines(period(past), said={"Start": Expr('TARGET.Owner == "ada"')})
    tally = PeriodSimulation(found, USUAL).run()
    assert {JobId(1, 0)} == {job for _, job in tally.starts}
    assert 1 == tally.sums({"bob": ["bob"]})["bob"].waiting


def test_a_machine_decides_by_the_whole_job() -> None:
    """
    A negotiator is not told of Site, so it matches both; START of the machine sees it and refuses Bob's.
    """
    past = InventedHistory()
    past.machine("m", cpus=2)
    past.submit("ada", Site="here")
    past.submit("bob", Site="elsewhere")
    found = with_machines(period(past, 60.0), said={"Start": Expr('TARGET.Site =!= "elsewhere"')})
    simulation = PeriodSimulation(found, USUAL)
    assert {JobId(1, 0)} == {job for _, job in simulation.run().starts}
    assert simulation.running.refused > 0


def test_what_the_way_to_a_claim_took_is_measured() -> None:
    """
    Slots were without a claim for 1, 2 and 9 s while the next job waited, and for 50 s before one that was submitted meanwhile:
    the median of the first three is 2 s. So in the replay of two jobs the first begins at 2 s.
    """
    past = InventedHistory()
    past.machine("m", cpus=4)
    cluster = past.submit("ada", at=0.0, jobs=4)
    for proc, (began, ended) in enumerate(((5.0, 10.0), (11.0, 20.0), (22.0, 30.0), (39.0, 50.0))):
        past.ran(cluster, proc, "ada", "slot1_1@m", began, ended)
    late = past.submit("bob", at=90.0)
    past.ran(late, 0, "bob", "slot1_1@m", 100.0, 120.0)
    found = period(past)
    assert 2_000_000 == found.latency
    tally = PeriodSimulation(found, USUAL).run()
    assert moment(2) == min(tally.starts.values())


def test_an_answer_tells_how_far_it_may_be_believed() -> None:
    """
    Two jobs ran one after the other at 10 and 110 s where two cores were free: the replay begins both at 0, half of them 10 s
    apart from the record and the worst 110. Without a change, the replay and the changed one are equal.
    """
    past = InventedHistory()
    past.machine("m", cpus=4)
    cluster = past.submit("ada", jobs=2)
    past.ran(cluster, 0, "ada", "slot1_1@m", 10.0, 100.0)
    past.ran(cluster, 1, "ada", "slot1_2@m", 110.0, 200.0)
    found = period(past)
    answer = compare(found, USUAL, found, USUAL, changes=[], step=1_000_000)
    assert (2, 2, 2) == (answer.trust.begun_recorded, answer.trust.begun_replayed, answer.trust.begun_both)
    assert (10.0, 110.0, 1.0) == (
        answer.trust.apart_median,
        answer.trust.apart_p90,
        answer.trust.same_order,
    )
    assert answer.trust.core_hours_recorded == answer.trust.core_hours_replayed == 180 / 3600
    (ada,) = answer.submitters
    assert ada.replayed == ada.changed
    assert 60.0 == ada.recorded.wait_mean
    assert answer.usage["recorded"]["ada"].count(1.0) > 0


def test_the_order_of_starts_is_compared_by_pairs() -> None:
    """
    Of 1, 2, 3 the last comes first in the other: of three pairs one is as it was. Equal ones are in no order.
    """
    assert 1 / 3 == pytest.approx(same_order([(1, 2), (2, 3), (3, 1)]))
    assert 1.0 == same_order([(1, 5), (2, 5), (3, 5)])
    assert None is same_order([(1, 5), (1, 4)])
