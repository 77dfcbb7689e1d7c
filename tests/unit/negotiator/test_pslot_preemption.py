"""Several parts of one partitionable slot make room for one job."""

import pytest

from kettle.classad import parse
from kettle_services.negotiator.domain.cycle import Outcome, negotiate
from kettle_services.negotiator.domain.pool import Pool
from kettle_services.negotiator.domain.preemption import Preemption
from kettle_services.negotiator.domain.rejections import Reasons
from kettle_wire.ads import Ad, Expr, Scalar
from kettle_wire.ads.daemon import SlotSecret, SubmitterAd
from kettle_wire.commands.schedd import MatchedSlot
from kettle_wire.commands.startd import Occupied
from kettle_wire.subjects import slot_key

from .test_cycle import job, pool, slot, submitter
from .test_preemption import standing

TOGETHER = Preemption(together=True)
LARGE_ENOUGH = Expr("Cpus >= TARGET.RequestCpus")


def part(number: int, cpus: int, *, rank: float = 0.0, machine: str = "m", **more: Scalar) -> Ad:
    return {
        **slot(f"slot1_{number}@{machine}", cpus, 128 * cpus),
        "Disk": 1024,
        "State": "Claimed",
        "PartitionableSlot": False,
        "DynamicSlot": True,
        "SlotID": 1,
        "CurrentRank": rank,
        "Rank": Expr("TARGET.Liking ?: 0"),
        "Requirements": LARGE_ENOUGH,
        "AccountingGroup": "bob",
        "RemoteUser": "bob",
        **more,
    }


def rest(cpus: int, machine: str = "m", **more: Scalar) -> Ad:
    """What is left of the slot."""
    usual: dict[str, Scalar] = {
        "Rank": Expr("TARGET.Liking ?: 0"),
        "Requirements": LARGE_ENOUGH,
        "SlotWeight": cpus,
    }
    return slot(f"slot1@{machine}", cpus, 128 * cpus, **{**usual, **more})


def placed(slots: list[Ad], *submitters: SubmitterAd) -> Pool:
    """Slots of as many startds as there are machines."""
    one = pool([], *submitters)
    for ad in slots:
        name = str(ad["Name"])
        startd = name.partition("@")[2]
        one.slot(slot_key(startd, name), ad)
        one.secret(slot_key(startd, name), SlotSecret(startd=startd, capability=f"secret of {name}"))
    return one


def cycle(one: Pool, rules: Preemption = TOGETHER, **more: float) -> Outcome:
    standings = {name: standing(priority) for name, priority in more.items()}
    return negotiate(one, Reasons(), now=0.0, trust=2.0, standings=standings, preemption=rules)


def rooms(outcome: Outcome) -> list[list[str]]:
    """For each match the parts that make room."""
    return [
        [match.slot, *(each.slot for each in match.also)]
        for matches in outcome.messages.values()
        for match in matches
    ]


def test_as_few_make_room_as_suffice_and_those_who_are_liked_least() -> None:
    """
    One core is left; a job of four, liked 2, needs three more: it has those of two jobs liked 0 (one and two cores), and neither
    that of the one liked 1 nor that of the one liked 3. The match has the secret of each of them.
    """
    slots = [rest(1), part(1, 1, rank=1.0), part(2, 2), part(3, 1, rank=3.0), part(4, 1)]
    one = placed(slots, submitter("ada", (1, 3, job(RequestCpus=4, Liking=2))))

    (match,) = cycle(one).messages["ap"]

    assert (
        MatchedSlot(
            submitter="ada",
            autocluster=1,
            count=1,
            slot="slot1_2@m",
            startd="m",
            capability="secret of slot1_2@m",
            also=[Occupied("slot1_4@m", "secret of slot1_4@m")],
        )
        == match
    )


@pytest.mark.parametrize(
    ("slots", "rules"),
    [
        ([rest(1), part(1, 1), part(2, 2)], Preemption()),
        ([rest(1), part(1, 1, rank=2.0), part(2, 2)], TOGETHER),
        ([rest(0), part(1, 1), part(2, 2)], TOGETHER),
        ([rest(1), part(1, 1), part(2, 2, machine="n")], TOGETHER),
        (
            [rest(1, Requirements=Expr("Cpus >= TARGET.RequestCpus && Cpus < 4")), part(1, 1), part(2, 2)],
            TOGETHER,
        ),
    ],
    ids=[
        "not allowed",
        "one is liked as much",
        "too few cores",
        "another machine",
        "START is not true of them together",
    ],
)
def test_nobody_makes_room_for_what_would_not_fit(slots: list[Ad], rules: Preemption) -> None:
    """
    Parts are of one slot, each job liked less than the new one, and START is asked for all that the job would have.
    """
    assert [] == cycle(placed(slots, submitter("ada", (1, 1, job(RequestCpus=4, Liking=2)))), rules).matches


def test_a_single_slot_that_is_large_enough_comes_first() -> None:
    """What is free before any, then the one job that has enough, then two."""
    slots = [rest(0), part(1, 2), part(2, 2), rest(0, "n"), part(1, 4, machine="n"), rest(4, "o")]
    one = placed(slots, submitter("ada", (1, 3, job(RequestCpus=4, Liking=2))))

    assert [["slot1@o"], ["slot1_1@n"], ["slot1_1@m", "slot1_2@m"]] == rooms(cycle(one))


def test_who_was_told_to_make_room_is_not_told_again() -> None:
    """Neither for another job of the same cycle nor in the next one, before the ads show what came of it."""
    one = pool([rest(0), part(1, 2), part(2, 2)], submitter("ada", (1, 2, job(RequestCpus=4, Liking=2))))
    assert 1 == len(cycle(one).matches)
    one.submitter("Submitter.eve", submitter("eve", (1, 2, job(RequestCpus=2, Liking=9))))
    assert [] == cycle(one).matches


def test_priorities_have_several_make_room_too() -> None:
    """
    Ada, who is better and has less than her share, has the whole machine of four cores; where the rules do not say so, nothing.
    """
    rules = Preemption(requirements=parse("RemoteUserPrio > TARGET.SubmitterUserPrio * 1.2"), together=True)
    slots = [rest(0, TotalSlotCpus=4), *(part(number, 1, UserPreemption=True) for number in range(1, 5))]
    ours = submitter("ada", (1, 1, job(RequestCpus=3)))

    assert [3] == [len(room) for room in rooms(cycle(placed(slots, ours), rules, ada=1.0, bob=30.0))]
    assert [] == rooms(cycle(placed(slots, ours), rules, ada=28.0, bob=30.0))
    refusing = [{**ad, "UserPreemption": False} for ad in slots]
    assert [] == rooms(cycle(placed(refusing, ours), rules, ada=1.0, bob=30.0))
