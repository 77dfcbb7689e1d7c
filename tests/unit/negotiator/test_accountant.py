"""Priorities and usage, by the accountant's formulas."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.matchmaking import GroupRule, Tree
from kettle_services.negotiator.domain import accountant_commands
from kettle_services.negotiator.domain.accountant import Accountant, Use
from kettle_services.negotiator.domain.accountant_commands import Unacceptable, setting
from kettle_services.negotiator.domain.principals import (
    Factors,
    Principal,
    fold,
    fold_into,
    principal_of,
    row_of,
)
from kettle_wire.events import (
    PrincipalCharged,
    PrincipalDeleted,
    PrincipalEvent,
    PrincipalReset,
    PrincipalSet,
)
from kettle_wire.events.principal import Setting

DAY = 86_400.0
START = 1_000_000.0


def charged(seconds: float, weight: float, *, since: float = START, **more: float) -> PrincipalCharged:
    return PrincipalCharged(
        principal="alice",
        since=since,
        at=since + seconds,
        half_life=DAY,
        slots=weight / 10,
        weight=weight,
        **more,
    )


def folded(*events: PrincipalEvent) -> Principal:
    principal: Principal | None = None
    for event in events:
        principal = fold(principal, event)
    assert principal is not None
    return principal


def recorded(accountant: Accountant, now: float) -> list[PrincipalCharged]:
    """Charge, and fold what is recorded of it."""
    charges = accountant.charge(now)
    for event in charges:
        fold_into(accountant.principals, event)
    return charges


# -- worked examples ------------------------------------------------------------------------------------------------------


def test_a_half_life_of_use_goes_half_of_the_way() -> None:
    """
    A new submitter uses 100 cores for a day: beta = 0.5^(86400/86400) = 0.5, so 0.5*0.5 + 100*0.5 = 50.25; times 1000.
    """
    principal = folded(charged(DAY, 100.0))
    assert 50.25 == principal.priority
    assert 50_250.0 == principal.priority * Factors().of("alice", principal)


def test_a_half_life_without_use_takes_half_of_it() -> None:
    """After that day one without anything: 50.25*0.5 + 0*0.5 = 25.125."""
    principal = folded(charged(DAY, 100.0), charged(DAY, 0.0, since=START + DAY))
    assert 25.125 == principal.priority


def test_a_minute_of_a_thousand_cores() -> None:
    """
    With beta = 0.5^(60/86400) = 0.999518762... it is 0.5*beta + 1000*(1-beta) = 0.980996...; usage is 60*1000 weighted seconds.
    """
    principal = folded(charged(60.0, 1000.0))
    assert 0.980996 == pytest.approx(principal.priority, abs=2e-6)
    assert (6_000.0, 60_000.0) == (principal.accumulated, principal.weighted_accumulated)
    assert (START, START + 60.0) == (principal.begun, principal.last)


def test_nobody_is_better_than_the_best() -> None:
    """A priority of 0.6 decays to 0.3 in a day, and is 0.5, the least."""
    set_to = PrincipalSet(principal="alice", setting="priority", value=0.6, at=START, by="root")
    assert 0.5 == folded(set_to, charged(DAY, 0.0)).priority


def test_what_began_after_the_last_charge_is_not_charged_for_all_of_it() -> None:
    """
    8 cores matched 45 s after the last charge, 60 s between charges: Uncharged = -45 s, weighted -360;
    recent = 8 + -360/60 = 2, AccumulatedUsage = 1*60 - 45 = 15, weighted 8*60 - 360 = 120.
    """
    accountant = Accountant()
    accountant.observe(START, {})
    accountant.observe(START + 45, {"alice": Use(1, 8)})
    (event,) = recorded(accountant, START + 60)

    assert (1, 8, -45.0, -360.0) == (event.slots, event.weight, event.uncharged, event.weighted_uncharged)
    principal = accountant.principals["alice"]
    assert (15.0, 120.0) == (principal.accumulated, principal.weighted_accumulated)
    beta = 0.5 ** (60 / DAY)
    assert 0.5 * beta + 2 * (1 - beta) == pytest.approx(principal.priority)


def test_what_ended_before_the_charge_is_charged() -> None:
    """
    8 cores released 45 s after the last charge: in use is nothing, Uncharged = +45 s, recent = 0 + 360/60 = 6.
    """
    accountant = Accountant()
    accountant.observe(START, {"alice": Use(1, 8)})
    recorded(accountant, START)
    accountant.observe(START + 45, {})
    (event,) = recorded(accountant, START + 60)

    assert (0, 0, 45.0, 360.0) == (event.slots, event.weight, event.uncharged, event.weighted_uncharged)
    assert 360.0 == accountant.principals["alice"].weighted_accumulated
    assert [] == accountant.charge(START + 120)


def test_a_clock_that_was_put_back_charges_nothing() -> None:
    """With dt < 0 only the clock is reset; from there on usage counts again."""
    before = folded(charged(60.0, 8.0))
    after = fold(before, charged(30.0, 8.0, since=START - 3600.0))
    assert msgspec.structs.replace(before, charged=START - 3570.0) == after
    assert after is not None
    again = fold(after, charged(10.0, 8.0, since=START - 3570.0))
    assert again is not None
    assert before.weighted_accumulated + 80.0 == again.weighted_accumulated


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        ("alice", 1000.0),
        ("nice-user.alice", 1e10),
        ("Nice-User.alice@here.org", 1e10),
        ("alice@here.org", 1000.0),
        ("alice@HERE.org", 1000.0),
        ("alice@elsewhere.org", 1e7),
    ],
)
def test_factors_follow_from_the_name_unless_one_is_set(name: str, factor: float) -> None:
    """
    DEFAULT_PRIO_FACTOR 1000, NICE_USER_PRIO_FACTOR 1e10, REMOTE_PRIO_FACTOR 1e7 where the domain is not the local one.
    """
    factors = Factors(local_domain="here.org")
    assert factor == factors.of(name, Principal())
    assert 7.0 == factors.of(name, Principal(factor=7.0))


# -- what holds always ---------------------------------------------------------------------------------------------------

USES = st.lists(st.tuples(st.floats(0.125, 5000.0), st.integers(0, 64)), min_size=1, max_size=12)


@given(USES, st.data())
def test_usage_is_the_integral_however_often_it_is_charged(
    uses: list[tuple[float, int]], data: st.DataObject
) -> None:
    """Weighted usage is the sum of cores times seconds, wherever in between charges are recorded."""
    accountant, now, used = Accountant(), START, 0.0
    accountant.observe(now, {})
    for seconds, cores in uses:
        accountant.observe(now, {"alice": Use(1, cores)} if cores else {})
        now, used = now + seconds, used + seconds * cores
        if data.draw(st.booleans()):
            recorded(accountant, now)
    recorded(accountant, now)
    found = accountant.principals.get("alice", Principal()).weighted_accumulated
    assert used == pytest.approx(found, rel=1e-9, abs=1e-5)


@given(st.floats(1.0, 1e6), st.floats(0.01, 0.99), st.floats(0.0, 1e5), st.floats(0.5, 1e5))
def test_two_charges_of_steady_use_are_one(seconds: float, part: float, weight: float, first: float) -> None:
    """
    The formula composes: priority does not depend on how often it is worked out while usage stays the same.
    """
    begin = PrincipalSet(principal="alice", setting="priority", value=first, at=START, by="root")
    half = seconds * part
    once = folded(begin, charged(seconds, weight))
    twice = folded(begin, charged(half, weight), charged(seconds - half, weight, since=START + half))
    assert once.priority == pytest.approx(twice.priority, rel=1e-6)


@given(USES)
def test_a_standing_is_what_a_charge_would_make_of_it(uses: list[tuple[float, int]]) -> None:
    """Asked at any moment, the accountant says what it would record then."""
    accountant, now = Accountant(), START
    accountant.observe(now, {})
    for seconds, cores in uses:
        accountant.observe(now, {"alice": Use(1, cores), "bob": Use(2, 1)})
        now += seconds
        before = accountant.standing("alice", now).principal
        recorded(accountant, now)
        after = accountant.standing("alice", now).principal
        assert math.isclose(before.priority, after.priority, rel_tol=1e-9)
        assert math.isclose(
            before.weighted_accumulated, after.weighted_accumulated, rel_tol=1e-9, abs_tol=1e-6
        )


@given(USES)
def test_priorities_follow_from_what_was_recorded(uses: list[tuple[float, int]]) -> None:
    """
    Folding the recorded events again gives exactly the same principals, and a row of the working set comes back as it
    was.
    """
    accountant, now, log = Accountant(), START, list[PrincipalEvent]()
    accountant.observe(now, {})
    for seconds, cores in uses:
        accountant.observe(now, {"alice": Use(1, cores)})
        now += seconds
        log += recorded(accountant, now)
        for event in accountant_commands.setting(
            accountant, "alice", "factor", 10.0 + cores, now=now, by="root"
        ):
            fold_into(accountant.principals, event)
            log.append(event)
    assert folded(*log) == accountant.principals["alice"]
    assert folded(*log) == principal_of(row_of(folded(*log)))


def test_use_goes_on_while_nobody_looked() -> None:
    """
    An accountant that comes back after 100 s charges what ran before and runs now: 8 of its 12 cores, and no others.
    """
    first = Accountant()
    first.observe(START, {"alice": Use(2, 12), "bob": Use(1, 4)})
    recorded(first, START + 10)
    second = Accountant()
    second.restore(first.principals)
    second.observe(START + 110, {"alice": Use(1, 8), "eve": Use(1, 1)})
    recorded(second, START + 120)

    used = {name: principal.weighted_accumulated for name, principal in second.principals.items()}
    assert {"alice": 12 * 10 + 8 * 110.0, "bob": 40.0, "eve": 10.0} == pytest.approx(used)


# -- administrators ------------------------------------------------------------------------------------------------------


def test_administrators_commands_are_events() -> None:
    """
    What a charge changes too is set after a charge of what that principal used until then; nobody else is charged.
    """
    accountant = Accountant()
    accountant.observe(START, {"alice": Use(1, 8), "bob": Use(1, 8)})
    events = accountant_commands.setting(accountant, "alice", "factor", 10.0, now=START + 60, by="root")
    assert ["PrincipalSet"] == [type(event).__name__ for event in events]
    events += accountant_commands.setting(accountant, "alice", "priority", 2.0, now=START + 60, by="root")
    assert ["PrincipalSet", "PrincipalCharged", "PrincipalSet"] == [type(event).__name__ for event in events]
    assert {"alice"} == {event.principal for event in events}
    for event in events:
        fold_into(accountant.principals, event)
    assert 2.0 == accountant.standing("alice", START + 60).principal.priority
    assert 480.0 == accountant.standing("alice", START + 60).principal.weighted_accumulated
    assert 480.0 == accountant.standing("bob", START + 60).principal.weighted_accumulated
    for event in accountant_commands.resetting(accountant, ["alice"], now=START + 90, by="root"):
        fold_into(accountant.principals, event)
    principal = accountant.principals["alice"]
    assert (0.0, 0.0, 10.0) == (principal.accumulated, principal.weighted_accumulated, principal.factor)
    assert START + 90 == principal.begun
    for event in accountant_commands.deleting(accountant, "alice", now=START + 90, by="root"):
        fold_into(accountant.principals, event)
    assert {} == accountant.principals


@given(USES, st.data())
def test_usage_is_the_integral_also_of_who_is_charged_alone(
    uses: list[tuple[float, int]], data: st.DataObject
) -> None:
    """A charge of one in between takes nothing from what it, or anybody else, is charged in the end."""
    accountant, now, used = Accountant(), START, 0.0
    accountant.observe(now, {})
    for seconds, cores in uses:
        accountant.observe(now, {name: Use(1, cores) for name in ("alice", "bob")} if cores else {})
        now, used = now + seconds, used + seconds * cores
        if data.draw(st.booleans()):
            for event in accountant.charge_one("alice", now):
                fold_into(accountant.principals, event)
        if data.draw(st.booleans()):
            recorded(accountant, now)
    for name in ("alice", "bob"):
        standing = accountant.standing(name, now).principal.weighted_accumulated
        assert used == pytest.approx(standing, rel=1e-9, abs=1e-5)
    recorded(accountant, now)
    for name in ("alice", "bob"):
        found = accountant.principals.get(name, Principal()).weighted_accumulated
        assert used == pytest.approx(found, rel=1e-9, abs=1e-5)


def test_names_that_mean_nothing_any_more_are_forgotten() -> None:
    """Only those at the best priority, for whom nothing is set, who have used nothing and use nothing."""
    accountant = Accountant()
    accountant.restore(
        {
            "idle": Principal(priority=0.6, charged=START),
            "factor": Principal(factor=1000.0),
            "floor": Principal(floor=1.0),
            "ceiling": Principal(ceiling=0.0),
            "used": Principal(weighted_accumulated=1.0),
            "uses": Principal(),
            "has used": Principal(),
        }
    )
    accountant.observe(START, {"has used": Use(1, 1)})
    accountant.observe(START + 1, {"uses": Use(1, 1)})
    assert [] == accountant_commands.forgetting(accountant, now=START + 1)
    (gone,) = accountant_commands.forgetting(accountant, now=START + DAY)
    assert PrincipalDeleted(principal="idle", at=START + DAY, by="the accountant") == gone


@pytest.mark.parametrize(
    ("what", "value", "says"),
    [
        ("factor", 0.5, "1 or more"),
        ("factor", math.nan, "1 or more"),
        ("factor", math.inf, "1 or more"),
        ("priority", 0.4, "0.5 or more"),
        ("accumulated", -1.0, "0 or more seconds"),
        ("floor", -1.0, "0 or more"),
        ("floor", 11.0, "above its ceiling of 10"),
        ("ceiling", -2.0, "-1 for none"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(what: Setting, value: float, says: str) -> None:
    """And nothing of it is recorded."""
    accountant = Accountant()
    accountant.restore({"alice": Principal(ceiling=10.0)})
    with pytest.raises(Unacceptable, match=says):
        accountant_commands.setting(accountant, "alice", what, value, now=START, by="root")


def test_who_is_forgotten_begins_as_somebody_new() -> None:
    """The row of the working set stays, empty, for the stream may go on."""
    gone = PrincipalDeleted(principal="alice", at=START + 60, by="root")
    assert fold(folded(charged(60.0, 100.0)), gone) is None
    assert principal_of(row_of(None)) is None
    again = fold(None, PrincipalReset(principal="alice", at=START + 61, by="root"))
    assert Principal(begun=START + 61) == again


def test_a_group_is_charged_for_all_below_it() -> None:
    """
    Ada has 3 cores in a.x, bob 2 in a, eve 4 in no group: for 100 s a is charged 500 core seconds, a.x 300.

    With a half-life of 100 s the priority of a is 0.5*0.5 + 5*0.5 = 2.75. Who is in a.x has the factor of a.x: the one that
    an administrator set for the group, else the configured one, unless he has one of his own.
    """
    tree = Tree({"a": GroupRule(quota=5, prio_factor=10), "a.x": GroupRule(prio_factor=20)})
    accountant = Accountant(half_life=100.0, tree=tree)
    accountant.observe(1000.0, {"a.x.ada": Use(1, 3), "a.bob": Use(1, 2), "eve": Use(1, 4)})
    standing = accountant.standing("<a>", 1100.0)
    assert pytest.approx(2.75) == standing.principal.priority
    assert (500.0, 10.0) == (standing.principal.weighted_accumulated, standing.factor)
    for event in accountant.charge(1100.0):
        fold_into(accountant.principals, event)
    assert {"<a>": 500.0, "<a.x>": 300.0, "a.bob": 200.0, "a.x.ada": 300.0, "eve": 400.0} == {
        name: principal.weighted_accumulated for name, principal in accountant.principals.items()
    }
    assert [20.0, 10.0, 1000.0] == [
        accountant.standing(n, 1100.0).factor for n in ("a.x.ada", "a.bob", "eve")
    ]
    for order in setting(accountant, "<a.x>", "factor", 2.0, now=1100.0, by="root"):
        fold_into(accountant.principals, order)
    assert [2.0, 10.0] == [accountant.standing(n, 1100.0).factor for n in ("a.x.ada", "a.bob")]


@pytest.mark.parametrize(
    ("name", "what", "says"),
    [("<b>", "factor", "no group <b>"), ("<A>", "factor", "write <a>"), ("<a>", "ceiling", "quota")],
)
def test_what_makes_no_sense_of_a_group_is_refused(name: str, what: Setting, says: str) -> None:
    """A group that there is not, another spelling of one, and a floor or ceiling: its quota is that."""
    accountant = Accountant(tree=Tree({"a": GroupRule(quota=5)}))
    with pytest.raises(Unacceptable, match=says):
        setting(accountant, name, what, 5.0, now=1.0, by="root")
