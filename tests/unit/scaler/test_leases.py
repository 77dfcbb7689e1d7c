"""What becomes of leases when something goes wrong."""

import msgspec
import pytest

from kettle_services.scaler.commands.renewals import next_renewal
from kettle_services.scaler.domain.leases.book import Create, Drain, Look, Remove, standing
from kettle_services.scaler.domain.leases.reconciling import ended
from kettle_services.scaler.domain.leases.wishes import drain, withdraw
from kettle_wire.commands.scaler import Phase
from kettle_wire.events import decode, encode
from kettle_wire.events.lease import (
    LeaseExtended,
    LeaseFailed,
    LeaseGone,
    LeaseLost,
    LeaseRequested,
    OfferClosed,
    ProviderFrozen,
)
from kettle_wire.leases import ErrorClass, LeaseState

from .leases_lab import OFFER, LeaseLab, machine


def test_an_attempt_in_doubt_is_looked_for_and_not_made_again() -> None:
    """No second machine is asked for while nobody knows; found, it is the machine of the lease."""
    lab = LeaseLab()
    [lease] = lab.request()
    assert [lease] == lab.creates(lab.after(1.0))
    lab.unheard(lease)
    for _ in range(20):
        assert [] == lab.creates(lab.after(5.0))
    lab.lists(machine(lease, "i-7"))
    assert (LeaseState.ACCEPTED, "i-7") == (lab.lease(lease).state, lab.lease(lease).handle)


def test_a_machine_with_jobs_is_told_at_once_to_take_no_more() -> None:
    """It may say a quarter of a minute later how it is; one that is not there yet is not told anything."""
    lab = LeaseLab()
    first, second = lab.request(2)
    lab.after(1.0)
    lab.made(first, second)
    lab.says(first, Phase.READY, claims=1)
    until = lab.now + 60.0
    assert [Drain(first, "less", busy=True)] == lab.decide(
        lambda decision: drain(decision, lab.lease(first), "less", until)
    )
    assert (LeaseState.DRAINING, until) == (lab.lease(first).state, lab.lease(first).until)
    acts = lab.decide(lambda decision: drain(decision, lab.lease(second), "less", until))
    assert [] == acts


def test_a_request_was_lost_if_two_lists_are_without_it() -> None:
    """It is given up after two complete lists, and not before a provisioner must have ended with it."""
    lab = LeaseLab()
    [lease] = lab.request()
    lab.after(1.0)
    lab.start_again()
    assert LeaseState.IN_DOUBT is lab.lease(lease).state
    lab.lists()
    lab.lists()
    lab.now += lab.timers.answer + 6.0
    lab.lists(complete=False)
    lab.lists()
    assert lease in lab.book.leases
    lab.lists()
    assert lease not in lab.book.leases
    assert isinstance(lab.events[-1], LeaseFailed)


def test_what_is_withdrawn_in_doubt_is_removed_when_it_is_found() -> None:
    """The wish to have it gone is kept until it is known whether there is a machine."""
    lab = LeaseLab()
    [lease] = lab.request()
    lab.after(1.0)
    lab.unheard(lease)
    lab.decide(lambda decision: withdraw(decision, lab.lease(lease), "the job was removed"))
    assert LeaseState.IN_DOUBT is lab.lease(lease).state
    assert [Remove("cloud", "i-7")] == lab.lists(machine(lease, "i-7"))
    assert LeaseState.TERMINATING is lab.lease(lease).state


def test_a_start_removes_nothing_before_the_first_list() -> None:
    """After a restart a removal that is due waits until its provider has answered once."""
    lab = LeaseLab()
    [lease] = lab.request()
    lab.after(1.0)
    lab.made(lease)
    lab.decide(lambda decision: withdraw(decision, lab.lease(lease), "not needed"))
    lab.start_again()
    assert [] == lab.after(1000.0)
    lab.lists(machine(lease))
    assert [Remove("cloud", f"i-{lease}")] == lab.after(1000.0)


@pytest.mark.parametrize("error", [ErrorClass.CAPACITY, ErrorClass.REQUEST])
def test_an_offer_that_is_refused_is_closed_and_another_can_be_tried_at_once(error: ErrorClass) -> None:
    """What else waits for the same offer fails with it; other offers are open."""
    lab = LeaseLab()
    lab.ready(1)
    leases = lab.request(3)
    lab.after(1.0)
    lab.refused(leases[0], error, "InsufficientInstanceCapacity")
    [waiting] = lab.request()
    assert [] == lab.creates(lab.after(1.0))
    assert waiting not in lab.book.leases
    stands = standing(lab.book, "crowd", OFFER, lab.now)
    assert 0 == stands.limit
    assert "InsufficientInstanceCapacity" in stands.words
    other = msgspec.structs.replace(OFFER, name="large", cpus=8)
    assert standing(lab.book, "crowd", other, lab.now).limit is None


def test_pauses_grow_and_end_with_one_machine() -> None:
    """
    Each closure in a row is about twice as long, up to an hour; after it one machine is tried, and if that is ready all are.
    """
    lab = LeaseLab()
    lab.ready(1)
    pauses: list[float] = []
    for _ in range(6):
        leases = lab.request(5)
        asked = lab.creates(lab.after(1.0))
        assert len(asked) == (5 if not pauses else 1)
        for lease in asked:
            lab.refused(lease, ErrorClass.CAPACITY)
        closed = [event for event in lab.events if isinstance(event, OfferClosed)][-1]
        pauses.append(closed.until - lab.now)
        lab.after(0.0)
        assert not set(leases) & set(lab.book.leases)
        lab.now = closed.until + 1.0
    usual = [300, 600, 1200, 2400, 3600, 3600]
    assert [pytest.approx(each, rel=0.11) for each in usual] == pauses
    [lease] = lab.request()
    lab.after(1.0)
    lab.made(lease)
    lab.says(lease, Phase.READY)
    assert standing(lab.book, "crowd", OFFER, lab.now).limit is None


def test_a_wrong_credential_closes_its_provider_until_it_is_accepted() -> None:
    """It is not tried again with time, and an error of a list is no word about machines."""
    lab = LeaseLab()
    [lease] = lab.ready(1)
    lab.trouble(ErrorClass.AUTH)
    assert lease in lab.book.leases
    lab.request()
    assert [] == lab.creates(lab.after(100_000.0))
    lab.lists(machine(lease))
    [again] = lab.request()
    assert [again] == lab.creates(lab.after(1.0))


def test_a_quota_is_closed_until_something_has_gone() -> None:
    """A machine that goes makes room at once."""
    lab = LeaseLab()
    [there] = lab.ready(1)
    [lease] = lab.request()
    lab.after(1.0)
    lab.refused(lease, ErrorClass.QUOTA, "VcpuLimitExceeded")
    assert 0 == standing(lab.book, "crowd", OFFER, lab.now).limit
    lab.says(there, Phase.ENDED)
    lab.now += 60.0
    lab.gone(f"i-{there}")
    assert standing(lab.book, "crowd", OFFER, lab.now).limit is None


def test_a_refusal_for_a_moment_is_tried_again_a_few_times() -> None:
    """Each attempt has a number of its own, and comes later after the one before."""
    lab = LeaseLab()
    [lease] = lab.request()
    attempts: list[int] = []
    while lease in lab.book.leases:
        for act in lab.after(1.0):
            if isinstance(act, Create):
                attempts.append(act.order.attempt)
                lab.refused(lease, ErrorClass.TRANSIENT)
    assert [1, 2, 3, 4, 5] == attempts


def test_a_broken_template_costs_three_machines() -> None:
    """However many wait and however long: one at a time, three in all, until somebody changes something."""
    lab = LeaseLab()
    made = 0
    for _ in range(200):
        lab.request(50)
        for lease in lab.creates(lab.after(120.0)):
            made += 1
            lab.made(lease)
        for each in list(lab.book.leases.values()):
            if each.state is LeaseState.TERMINATING:
                lab.gone(f"i-{each.id}")
    assert 3 == made
    newer = msgspec.structs.replace(OFFER, template="image-2")
    assert 1 == standing(lab.book, "crowd", newer, lab.now).limit


def test_a_machine_that_says_nothing_is_removed_with_what_it_wrote() -> None:
    """Its deadline passes: its console is kept, and its offer is blamed."""
    lab = LeaseLab()
    [lease] = lab.request()
    lab.after(1.0)
    lab.made(lease)
    assert [Remove("cloud", f"i-{lease}", console=True)] == lab.after(181.0)
    assert lab.lease(lease).failed


def test_news_give_more_time_three_times() -> None:
    """
    A machine that is slow but goes on is not taken for stuck; one that never ends to say something new is.
    """
    lab = LeaseLab()
    [lease] = lab.request()
    lab.after(1.0)
    lab.made(lease)
    for step in range(10):
        lab.says(lease, Phase.VALIDATING, f"step {step}")
        lab.after(200.0)
        if lab.lease(lease).state is LeaseState.TERMINATING:
            break
    assert 3 == sum(isinstance(event, LeaseExtended) for event in lab.events)
    assert LeaseState.TERMINATING is lab.lease(lease).state


def test_machines_are_not_lost_because_we_are_deaf() -> None:
    """
    Fifteen minutes without the bus take no machine away; those that are silent afterwards are looked for.
    """
    lab = LeaseLab()
    leases = lab.ready(50)
    lab.seen.sound = None
    for _ in range(60):
        assert not [act for act in lab.after(15.0) if isinstance(act, Remove)]
    lab.seen.sound = lab.now
    assert not [act for act in lab.after(100.0) if isinstance(act, Remove | Look)]
    assert len([act for act in lab.after(30.0) if isinstance(act, Look)]) == len(leases)
    assert set(leases) == set(lab.book.leases)


def test_an_empty_list_is_not_believed_while_machines_speak() -> None:
    """
    A wrong credential may get an empty list, and "gone" for each machine: what says how it is, is there.
    """
    lab = LeaseLab()
    leases = lab.ready(2)
    for _ in range(20):
        lab.now += 60.0
        for lease in leases:
            lab.says(lease, Phase.READY)
        lab.lists()
        for lease in leases:
            lab.gone(f"i-{lease}")
    assert set(leases) == set(lab.book.leases)


def test_many_that_are_missing_together_are_believed_later() -> None:
    """Nothing is given up for ten minutes, which is recorded; what is still gone then is lost."""
    lab = LeaseLab()
    leases = lab.ready(10)
    kept = leases[:2]
    began = lab.now = lab.now + 60.0
    while set(lab.book.leases) != set(kept):
        lab.lists(*map(machine, kept))
        for lease in set(lab.book.leases) - set(kept):
            lab.gone(f"i-{lease}")
        if lab.now < began + lab.timers.guard:
            assert set(leases) == set(lab.book.leases)
        lab.now += 60.0
        assert lab.now < began + 2 * lab.timers.guard
    assert 1 == sum(isinstance(event, ProviderFrozen) for event in lab.events)
    assert 8 == sum(isinstance(event, LeaseLost) for event in lab.events)


def test_what_is_proven_gone_is_believed_at_once() -> None:
    """
    Where a provider has looked at what a machine consists of, one word is enough, also when all are gone and nobody else is there.
    """
    lab = LeaseLab()
    leases = lab.ready(4)
    lab.start_again()
    lab.lists()
    for lease in leases:
        lab.gone(f"i-{lease}", proven=True)
    assert not lab.book.leases


def test_a_young_machine_that_is_removed_is_gone_when_it_could_be_shown() -> None:
    """Until then "gone" says nothing, however often; afterwards once is enough for what was asked to go."""
    lab = LeaseLab()
    [lease] = lab.request()
    lab.after(1.0)
    lab.made(lease)
    lab.decide(lambda decision: withdraw(decision, lab.lease(lease), "nobody needs it"))
    before, accepted = len(lab.events), lab.now
    for age in (1.0, 4.0, 5.0):
        lab.now = accepted + age
        lab.gone(f"i-{lease}")
        assert [] == lab.events[before:]
    lab.now = accepted + 5.1
    lab.gone(f"i-{lease}")
    assert [LeaseGone] == [type(event) for event in lab.events[before:]]


def test_a_machine_whose_end_was_noticed_is_looked_at_at_once() -> None:
    """However lately it was looked at; what nobody holds, or before the first list, is not asked for."""
    lab = LeaseLab()
    first, second = lab.ready(2)
    for _ in range(2):
        assert [Look("cloud", f"i-{first}")] == lab.decide(
            lambda decision: ended(decision, "cloud", f"i-{first}")
        )
    assert [] == lab.decide(lambda decision: ended(decision, "cloud", "i-unknown"))
    assert [] == lab.decide(lambda decision: ended(decision, "other", f"i-{first}"))
    lab.gone(f"i-{first}", proven=True)
    assert [second] == list(lab.book.leases)
    lab.start_again()
    assert [] == lab.decide(lambda decision: ended(decision, "cloud", f"i-{second}"))


def test_what_is_heard_before_it_has_a_handle_is_asked_for_again_soon() -> None:
    """A machine may be faster than the answer that says its name."""
    lab = LeaseLab()
    (lease,) = lab.request()
    lab.after(1.0)
    lab.says(lease, Phase.READY)
    assert not lab.book.leases[lease].ready
    assert 2.0 == next_renewal(lab.book.leases[lease], 15.0)
    lab.made(lease)
    assert 15.0 == next_renewal(lab.book.leases[lease], 15.0)
    lab.says(lease, Phase.READY)
    assert lab.book.leases[lease].ready


def test_of_two_machines_of_one_lease_one_goes() -> None:
    """The lease keeps the one that it knows, and is not over before the other is gone, too."""
    lab = LeaseLab()
    [lease] = lab.ready(1)
    assert [Remove("cloud", "i-2")] == lab.lists(machine(lease), machine(lease, "i-2"))
    lab.says(lease, Phase.ENDED)
    lab.now += 60.0
    lab.gone(f"i-{lease}")
    assert lease in lab.book.leases
    lab.gone("i-2")
    lab.gone(f"i-{lease}")
    assert {} == lab.book.leases


def test_a_machine_of_no_lease_is_removed_after_a_while() -> None:
    """Somebody may have made it by hand, or our record was set back: it has fifteen minutes."""
    lab = LeaseLab()
    assert [] == lab.lists(machine("nobody-1", "i-9"))
    assert [] == lab.after(899.0)
    assert [Remove("cloud", "i-9")] == lab.after(2.0)
    lab.gone("i-9")
    assert {} == lab.book.orphans


def test_what_a_machine_says_does_not_fill_the_log() -> None:
    """However often it says in a moment that it has jobs and that it has none; what it says later counts."""
    lab = LeaseLab()
    [lease] = lab.ready(1)
    lab.now += 2.0
    lab.says(lease, Phase.READY, claims=1)
    before = len(lab.events)
    for claims in range(100):
        lab.says(lease, Phase.READY, claims=claims % 2)
    assert before == len(lab.events)
    assert LeaseState.BUSY is lab.lease(lease).state
    lab.now += 2.0
    lab.says(lease, Phase.READY)
    assert LeaseState.READY is lab.lease(lease).state
    assert before + 1 == len(lab.events)


def test_whatever_a_machine_says_can_be_read_again() -> None:
    """What is recorded of it is what events may say: else no scaler could begin after it."""
    for phase in Phase:
        lab = LeaseLab()
        [lease] = lab.request()
        lab.after(1.0)
        lab.made(lease)
        for last in "ab":
            lab.says(lease, Phase.VALIDATING, "".join(map(chr, range(256))) * 15 + last)
            lab.says(lease, phase, "\n\x00\x1b\u2028 " * 800 + last)
        for event in lab.events:
            assert event == decode(encode(event))


@pytest.mark.parametrize(
    ("owner", "groups", "group"),
    [
        ("", ["physics"], "physics"),
        ("", ["physics", "biology"], ""),
        ("", ["high energy"], ""),
        ("ada", ["physics"], ""),
        ("", [], ""),
    ],
)
def test_iam_keeps_a_machine_for_the_one_group_that_it_is_for(
    owner: str, groups: list[str], group: str
) -> None:
    """
    Of several groups, of a person of a group, and of a name that iam does not take, its START decides alone.
    """
    lab = LeaseLab()
    event = LeaseRequested(
        lease="crowd-1-0",
        pool="crowd",
        offer=OFFER,
        life=600.0,
        until=lab.now + 600.0,
        owner=owner,
        groups=groups,
    )
    lab.state.apply("lease/crowd-1-0", event, lab.now)
    [create] = [act for act in lab.after(1.0) if isinstance(act, Create)]
    assert (owner, group) == (create.order.owner, create.order.group)
