"""What may still become of a job by periodic expressions, and what they wait for."""

import pytest

from kettle_services.schedd.domain.jobs.policy import SystemPolicy, SystemRule, decide
from kettle_services.schedd.domain.jobs.policy_outlook import outlook
from kettle_wire.ads import Ad, Expr
from kettle_wire.codes import HoldCode, JobStatus
from kettle_wire.commands.schedd import PolicyOutlook

NOW = 10_000.0
NONE = SystemPolicy()


def held(text: str, **more: object) -> Ad:
    ad: Ad = {
        "PeriodicRelease": Expr(text),
        "HoldReasonCode": int(HoldCode.JobPolicy),
        "EnteredCurrentStatus": 9_900,
        "NumJobStarts": 3,
    }
    return {**ad, **more}  # type: ignore[dict-item]  # values of ads


def told(ad: Ad, status: JobStatus = JobStatus.HELD, system: SystemPolicy = NONE) -> list[PolicyOutlook]:
    return outlook(ad, status, NOW, system)


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        ("true", 0.0),
        ("time() - EnteredCurrentStatus > 600", 501.0),
        ("NumJobStarts < 5 && CurrentTime >= 10_007 || false".replace("_", ""), 7.0),
        ("time() > 10000 + 40 * 86400", 40 * 86400 + 1.0),
        ("NumJobStarts < 3", None),
        ('int("x") > 1', None),
    ],
)
def test_the_moment_at_which_time_alone_makes_it_true_is_found(text: str, delay: float | None) -> None:
    """To the second, and at that moment the policy itself fires, and not a second before."""
    (one,) = told(held(text))
    assert ("PeriodicRelease", "release", delay) == (one.name, one.action, one.delay)
    for moment, fires in ((-1, False), (0, True)) if delay else ():
        verdict = decide(held(text), JobStatus.HELD, int(NOW + (delay or 0) + moment), NONE)
        assert fires == (verdict is not None)


def test_what_is_not_true_is_named_with_what_it_asks_for() -> None:
    """The clauses that hold are left out."""
    (one,) = told(held("NumJobStarts < 3 && HoldReasonCode == 3"))
    assert (["NumJobStarts < 3"], {"NumJobStarts": "3"}) == (one.false, one.values)


def test_the_sites_rules_are_told_too_and_what_does_not_count() -> None:
    """A job that was held by hand is not released by itself; nor is one that was held too often."""
    system = SystemPolicy(
        release=(SystemRule(expression="HoldReasonCode == 34", name="memory"),), max_releases=2
    )
    own, site = told(held("true", NumHolds=2), system=system)
    assert ("SYSTEM_PERIODIC_RELEASE_memory", None) == (site.name, site.delay)
    assert "held 2 times" in own.never
    (one,) = told(held("true", HoldReasonCode=int(HoldCode.UserRequest)))
    assert "the job was held by hand" == one.never


@pytest.mark.parametrize(
    ("status", "actions"),
    [
        (JobStatus.IDLE, ["hold", "remove"]),
        (JobStatus.RUNNING, ["vacate", "hold", "remove"]),
        (JobStatus.HELD, ["release", "remove"]),
    ],
)
def test_each_status_has_its_policies(status: JobStatus, actions: list[str]) -> None:
    """A literal false is as good as none, and a job that waits for its files has no policy."""
    ad: Ad = {f"Periodic{kind}": Expr("A > 1") for kind in ("Hold", "Release", "Remove", "Vacate")}
    assert actions == [one.action for one in told(ad, status)]
    assert [] == told(dict.fromkeys(ad, False), status)
    assert [] == told({**ad, "HoldReasonCode": int(HoldCode.SpoolingInput)})


def test_what_is_undefined_is_named() -> None:
    """An expression that asks for what the ad does not have is not true, and says of what."""
    (one,) = told({"PeriodicHold": Expr("RemoteCopies > 3 && NumHolds is undefined")}, JobStatus.RUNNING)
    assert (None, ["RemoteCopies > 3"], {"RemoteCopies": "undefined"}) == (one.delay, one.false, one.values)
