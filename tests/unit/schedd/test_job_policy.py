"""Every row of the order in which policies are looked at, and what makes one fire."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle_services.schedd.domain.jobs.policy import (
    PolicyVerdict,
    SystemPolicy,
    SystemRule,
    at_exit,
    decide,
    periodic,
)
from kettle_wire.ads import Ad, Expr, Scalar
from kettle_wire.attempts import Ending
from kettle_wire.codes import JobStatus

NOW = 1_790_000_000
IDLE, RUNNING, HELD, REMOVED, COMPLETED = (
    JobStatus.IDLE, JobStatus.RUNNING, JobStatus.HELD, JobStatus.REMOVED, JobStatus.COMPLETED,
)  # fmt: skip
TRUE = (SystemRule(expression="true"),)
ALL = SystemPolicy(hold=TRUE, release=TRUE, remove=TRUE, vacate=TRUE)
NONE = SystemPolicy()
RUN: Ad = {"ShadowBday": NOW - 100, "JobCurrentStartExecutingDate": NOW - 90}
EXIT: Ad = {**RUN, "ExitBySignal": False, "ExitCode": 3}
OWN: Ad = {
    "PeriodicHold": True,
    "PeriodicRelease": True,
    "PeriodicRemove": True,
    "PeriodicVacate": True,
    "OnExitHold": True,
    "OnExitRemove": False,
}


def verdict(ad: Ad, status: JobStatus, system: SystemPolicy = NONE, **how: Any) -> tuple[str, int] | None:
    found = decide({"HoldReasonCode": 3, **ad}, status, NOW, system, **how)
    return None if found is None else (found.action, found.ending.code)


@pytest.mark.parametrize(
    ("ad", "status", "system", "wanted"),
    [
        # 1: allowed durations, then vacate; each before everything that follows
        ({**RUN, **OWN, "AllowedJobDuration": 100, "AllowedExecuteDuration": 1}, RUNNING, ALL, ("hold", 46)),
        ({**RUN, **OWN, "AllowedJobDuration": 101, "AllowedExecuteDuration": 89}, RUNNING, ALL, ("hold", 47)),
        ({**RUN, **OWN, "AllowedExecuteDuration": 90}, RUNNING, ALL, ("vacate", 1000)),
        ({**RUN, "TimerRemove": 1}, RUNNING, ALL, ("vacate", 1001)),
        ({**RUN, **OWN, "AllowedJobDuration": 1}, IDLE, NONE, ("hold", 3)),
        # an attempt that has not begun to execute, one by a clock that is behind, one with a checkpoint in between
        ({"ShadowBday": NOW - 100, "AllowedExecuteDuration": 1}, RUNNING, NONE, None),
        ({**RUN, "JobCurrentStartExecutingDate": NOW - 999, "AllowedExecuteDuration": 100}, RUNNING, NONE, None),
        ({**RUN, "JobCurrentStartExecutingDate": NOW - 999, "AllowedExecuteDuration": 99}, RUNNING, NONE, ("hold", 47)),
        ({**RUN, "TransferOutFinished": NOW - 10, "AllowedExecuteDuration": 10}, RUNNING, NONE, None),
        ({**RUN, "TransferOutFinished": NOW - 11, "AllowedExecuteDuration": 10}, RUNNING, NONE, ("hold", 47)),
        # 2: the timer
        ({**OWN, "TimerRemove": NOW - 1}, IDLE, ALL, ("remove", 0)),
        ({**OWN, "TimerRemove": NOW - 1}, HELD, ALL, ("remove", 0)),
        ({"TimerRemove": NOW}, IDLE, NONE, None),
        ({"TimerRemove": -1}, IDLE, NONE, None),
        ({**OWN, "TimerRemove": "soon"}, IDLE, ALL, ("hold", 5)),
        ({**OWN, "TimerRemove": Expr("QDate + 5")}, HELD, ALL, ("hold", 5)),
        # 3: hold, unless held or completed
        (OWN, IDLE, ALL, ("hold", 3)),
        ({**RUN, "PeriodicHold": True}, RUNNING, NONE, ("hold", 3)),
        ({}, IDLE, SystemPolicy(hold=TRUE, remove=TRUE), ("hold", 26)),
        # 4: release, unless the owner holds it or it was held too often
        (OWN, HELD, ALL, ("release", 0)),
        ({}, HELD, ALL, ("release", 0)),
        ({**OWN, "HoldReasonCode": 1}, HELD, ALL, ("remove", 0)),
        ({**OWN, "NumHolds": 2}, HELD, SystemPolicy(max_releases=3), ("release", 0)),
        ({**OWN, "NumHolds": 3}, HELD, SystemPolicy(max_releases=3), ("remove", 0)),
        # 5: remove, whatever its status
        ({"PeriodicRemove": True}, IDLE, NONE, ("remove", 0)),
        ({"PeriodicRemove": True}, RUNNING, NONE, ("remove", 0)),
        ({"PeriodicRemove": True}, HELD, NONE, ("remove", 0)),
        (OWN, COMPLETED, ALL, ("remove", 0)),
        ({}, HELD, SystemPolicy(remove=TRUE), ("remove", 0)),
        # what is never looked at
        (OWN, REMOVED, ALL, None),
        ({**OWN, "HoldReasonCode": 16}, HELD, ALL, None),
        ({"OnExitHold": True, "OnExitRemove": False}, RUNNING, NONE, None),
    ],
)  # fmt: skip
def test_the_first_that_fires_counts(
    ad: Ad, status: JobStatus, system: SystemPolicy, wanted: tuple[str, int] | None
) -> None:
    """One row of HTCondor's order of periodic policies."""
    assert wanted == verdict(ad, status, system)


@pytest.mark.parametrize(
    ("ad", "system", "wanted"),
    [
        ({**EXIT, **OWN, "AllowedJobDuration": 100}, ALL, ("hold", 46)),
        ({**EXIT, **OWN, "AllowedExecuteDuration": 89}, ALL, ("hold", 47)),
        ({**EXIT, "PeriodicVacate": True}, SystemPolicy(vacate=TRUE), None),
        ({**EXIT, **OWN, "TimerRemove": 1}, ALL, ("remove", 0)),
        ({**EXIT, **OWN}, ALL, ("hold", 3)),
        ({**EXIT, "OnExitHold": True}, SystemPolicy(hold=TRUE, remove=TRUE), ("hold", 26)),
        ({**EXIT, "OnExitHold": True, "PeriodicRemove": True}, NONE, ("remove", 0)),
        ({**EXIT, "OnExitHold": True, "OnExitRemove": False}, NONE, ("hold", 3)),
        ({**EXIT, "OnExitHold": False, "OnExitRemove": False}, NONE, ("requeue", 1005)),
        ({**EXIT, "OnExitRemove": Expr("ExitCode == 4")}, NONE, ("requeue", 1005)),
        ({**EXIT, "OnExitRemove": 0.5}, NONE, ("requeue", 1005)),
        ({**EXIT, "OnExitRemove": Expr("ExitCode == 3")}, NONE, None),
        ({**EXIT, "OnExitRemove": Expr("NoSuchThing")}, NONE, None),
        ({**EXIT, "OnExitRemove": Expr("1/0")}, NONE, None),
        ({**EXIT, "OnExitRemove": "false"}, NONE, None),
        (EXIT, NONE, None),
        ({**RUN, "ExitBySignal": True, "ExitSignal": 9, "OnExitHold": Expr("ExitBySignal")}, NONE, ("hold", 3)),
        ({**RUN, "ExitBySignal": True, "ExitCode": 9}, NONE, None),
        ({**RUN, "ExitBySignal": True, "ExitCode": 9, "OnExitRemove": False}, NONE, ("requeue", 1005)),
        ({**RUN, "ExitBySignal": False}, NONE, ("hold", 5)),
        ({**RUN, "ExitCode": 0}, NONE, ("hold", 5)),
    ],
)  # fmt: skip
def test_at_the_exit_everything_is_looked_at_first(
    ad: Ad, system: SystemPolicy, wanted: tuple[str, int] | None
) -> None:
    """One row of the order at a job's exit: no vacate, the others, and then OnExitHold and OnExitRemove."""
    assert wanted == verdict(ad, RUNNING, system, exited=True)


@pytest.mark.parametrize(
    ("value", "fires"),
    [
        (True, True), (False, False), (1, True), (0, False), (-1, True), (1.5, True), (0.5, False), (-0.9, False),
        ("true", False), ("1", False), (Expr("undefined"), False), (Expr("error"), False), (Expr("1/0"), False),
        (Expr('real("inf")'), False), (Expr('real("NaN")'), False), (Expr("{ true }"), False),
        (Expr("[ a = true ]"), False), (Expr("PeriodicHold"), False), (Expr('Owner == "alice"'), True),
        (Expr('TARGET.Owner == "alice"'), False),
    ],
)  # fmt: skip
def test_what_fires(value: Scalar, fires: bool) -> None:
    """A truth value, or a number that is not zero without its fraction; nothing else ever does."""
    assert fires == (verdict({"Owner": "alice", "PeriodicHold": value}, IDLE) is not None)


def test_an_expression_without_end_does_not_fire() -> None:
    """What goes on too deeply is not true, and the next rule has its turn."""
    for terms, wanted in ((100, ("hold", 3)), (1000, ("remove", 0))):
        long = Expr("+".join(["1"] * terms))
        assert wanted == verdict({"PeriodicHold": long, "PeriodicRemove": True}, IDLE)


@pytest.mark.parametrize(
    ("ad", "reason", "subcode"),
    [
        (
            {"periodichold": Expr("NumHolds =?= undefined")},
            "The job attribute PeriodicHold expression 'NumHolds =?= undefined' evaluated to TRUE",
            0,
        ),
        ({"PeriodicHold": True}, "The job attribute PeriodicHold expression 'true' evaluated to TRUE", 0),
        (
            {
                "PeriodicHold": 1,
                "PeriodicHoldReason": Expr('strcat("too ", What)'),
                "PeriodicHoldSubCode": Expr("2 * 21"),
                "What": "big",
            },
            "too big",
            42,
        ),
        (
            {"PeriodicHold": 1, "PeriodicHoldReason": "", "PeriodicHoldSubCode": "7"},
            "The job attribute PeriodicHold expression '1' evaluated to TRUE",
            0,
        ),
    ],
)
def test_reasons_of_a_job(ad: Ad, reason: str, subcode: int) -> None:
    """The job's own words if they are a string that says something, else the expression as it was written."""
    ending = Ending(code=3, subcode=subcode, reason=reason)
    assert PolicyVerdict(action="hold", ending=ending) == decide(ad, IDLE, NOW, NONE)


def test_reasons_of_the_site_and_the_order_of_its_rules() -> None:
    """
    Named rules come in their order, then the unnamed; reason and subcode are worked out in the job's ad.
    """
    system = SystemPolicy(
        hold=(
            SystemRule(expression="Cpus > 1"),
            SystemRule(
                expression="Cpus > 3", name="b", reason='strcat(Owner, " asks too much")', subcode="Cpus"
            ),
            SystemRule(expression="Cpus > 2", name="a"),
        )
    )
    assert [
        ("eve asks too much", 4),
        ("The system macro SYSTEM_PERIODIC_HOLD expression 'Cpus > 2' evaluated to TRUE", 0),
        ("The system macro SYSTEM_PERIODIC_HOLD expression 'Cpus > 1' evaluated to TRUE", 0),
    ] == [
        (found.ending.reason, found.ending.subcode)
        for cpus in (4, 3, 2)
        if (found := decide({"Cpus": cpus, "Owner": "eve"}, IDLE, NOW, system)) is not None
    ]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(5, "00:05"), (90, "01:30"), (3600, "1:00:00"), (86_400, "1+00:00:00"), (90_061, "1+01:01:01")],
)
def test_durations(seconds: int, shown: str) -> None:
    """As HTCondor writes them: days and hours only where there are any."""
    found = decide({"ShadowBday": 0, "AllowedJobDuration": seconds}, RUNNING, NOW, NONE)
    assert found is not None
    assert f"The job exceeded allowed job duration of {shown}" == found.ending.reason


def test_a_reason_is_something_that_can_be_recorded() -> None:
    """No end, no NUL and no half characters."""
    found = decide({"PeriodicHold": True, "PeriodicHoldReason": "a\0" + "b" * 5000}, IDLE, NOW, NONE)
    assert found is not None
    assert found.ending.reason.startswith("a\\0b")
    assert len(found.ending.reason) < 1100


@pytest.mark.parametrize(
    ("ad", "looked_at", "looked_at_at_exit"),
    [
        ({"Cmd": "x"}, set[JobStatus](), False),
        ({"PeriodicHold": False, "OnExitHold": False}, set[JobStatus](), False),
        ({"periodicremove": Expr("x")}, {IDLE, RUNNING, HELD, JobStatus.COMPLETED}, True),
        ({"PeriodicRelease": True}, {HELD}, False),
        ({"AllowedExecuteDuration": 5}, {RUNNING}, True),
        ({"PeriodicVacate": True, "PeriodicHold": True}, {IDLE, RUNNING}, True),
        ({"OnExitRemove": False}, set[JobStatus](), True),
        ({"TimerRemove": 5}, {IDLE, RUNNING, HELD, JobStatus.COMPLETED}, True),
    ],
)
def test_jobs_without_a_policy_cost_nothing(
    ad: Ad, looked_at: set[JobStatus], looked_at_at_exit: bool
) -> None:
    """When a job is looked at is known from its attributes."""
    assert looked_at == set(periodic(ad))
    assert looked_at_at_exit == at_exit(ad)
    assert looked_at_at_exit == at_exit(
        [name for name, value in ad.items() if value is not False or looked_at_at_exit]
    )


def test_a_rule_has_a_subcode_only_where_one_is_recorded() -> None:
    """What would have no effect is refused."""
    rule = (SystemRule(expression="true", subcode="7"),)
    for kind in ("release", "remove"):
        with pytest.raises(ValueError, match="has no subcode"):
            msgspec.convert({kind: msgspec.to_builtins(rule)}, SystemPolicy)


@pytest.mark.parametrize("field", ["expression", "reason", "subcode"])
def test_a_rule_that_is_no_expression_is_refused(field: str) -> None:
    """With the field, the text and what is wrong with it."""
    rule = {"expression": "true", field: "1 +"}
    with pytest.raises(msgspec.ValidationError, match=rf"the {field} '1 \+' cannot be read"):
        msgspec.convert(rule, SystemRule)


values: st.SearchStrategy[Scalar] = st.one_of(
    st.booleans(),
    st.integers(-3, 3),
    st.integers(NOW - 3, NOW + 3),
    st.floats(),
    st.sampled_from([2**31, -(2**31), 2**62]),
    st.sampled_from(["", "true", "\0"]),
    st.sampled_from(
        ["undefined", "error", "1/0", "NumHolds > 1", "PeriodicHold", "time()", "{}", "[ a = 1 ]"]
    ).map(Expr),
)
names = st.sampled_from([
    "AllowedExecuteDuration", "AllowedJobDuration", "ExitBySignal", "ExitCode", "ExitSignal", "HoldReasonCode",
    "JobCurrentStartExecutingDate", "NumHolds", "OnExitHold", "OnExitHoldReason", "OnExitHoldSubCode", "OnExitRemove",
    "PeriodicHold", "PeriodicHoldReason", "PeriodicHoldSubCode", "PeriodicRelease", "PeriodicRemove",
    "PeriodicVacate", "ShadowBday", "TimerRemove", "TransferOutFinished",
])  # fmt: skip
rules = st.lists(
    st.builds(
        SystemRule,
        expression=st.sampled_from(["true", "NumHolds > 0", "1/0"]),
        name=st.sampled_from(["", "a"]),
    ),
    max_size=2,
).map(tuple)
systems = st.builds(
    SystemPolicy, hold=rules, release=rules, remove=rules, vacate=rules, max_releases=st.integers(-1, 3)
)
MAY_BE = {
    IDLE: {"hold", "remove"},
    RUNNING: {"hold", "remove", "vacate"},
    HELD: {"hold", "release", "remove"},
    COMPLETED: {"hold", "remove"},
    REMOVED: set[str](),
}


@given(st.dictionaries(names, values), st.sampled_from(list(MAY_BE)), systems)
def test_any_ad_has_one_answer(ad: Ad, status: JobStatus, system: SystemPolicy) -> None:
    """
    Whatever is in an ad: there is at most one verdict, always the same, one that the status allows, and none on a removed
    job; no policy of its own and none of the site's means none.
    """
    found = decide(ad, status, NOW, system)
    assert found == decide(dict(ad), status, NOW, system)
    assert found is None or found.action in MAY_BE[status]
    assert found is None or abs(found.ending.subcode) < 2**31
    if found is not None and found.action == "hold":
        assert found.ending.code in {3, 5, 26, 46, 47}
    if status not in periodic(ad) | system.concerned | {COMPLETED}:
        assert found is None


@given(st.dictionaries(names, values), systems)
def test_any_exit_has_one_answer(ad: Ad, system: SystemPolicy) -> None:
    """
    At its exit a job is held, removed, requeued or left to leave the queue; it is not vacated or released.
    """
    found = decide(ad, RUNNING, NOW, system, exited=True)
    assert found == decide(dict(ad), RUNNING, NOW, system, exited=True)
    assert found is None or found.action in {"hold", "remove", "requeue"}
    known = {**ad, "ExitBySignal": False, "ExitCode": 0}
    if not at_exit(known) and not system.concerned:
        assert decide(known, RUNNING, NOW, system, exited=True) is None
