"""What a startd refuses, whatever is asked of it."""

import msgspec
import pytest

from kettle_services.startd.domain.ads import slot_ad
from kettle_services.startd.domain.claims import activation as attempts
from kettle_services.startd.domain.claims import requests
from kettle_services.startd.domain.state.changes import AttemptFinished, ClaimRemoved, Renewed
from kettle_wire.ads import Expr, Scalar
from kettle_wire.codes import VacateCode
from kettle_wire.commands.startd import (
    NOT_KNOWN,
    Activation,
    Alive,
    ClaimKey,
)
from kettle_wire.jobs import JobId

from .hosts import KEY, NOW, activated, activation, claimed, machine, report, request


def probe(proc: int = 0, *, key: ClaimKey = KEY, attempt: int = 1) -> Activation:
    return msgspec.structs.replace(activation(proc, key=key, attempt=attempt), probe=True)


@pytest.mark.parametrize(
    ("code", "asked"),
    [
        (0, probe()),
        (NOT_KNOWN, probe(1)),
        (NOT_KNOWN, probe(attempt=2)),
        (NOT_KNOWN, probe(key=ClaimKey("c1", "wrong"))),
        (NOT_KNOWN, probe(key=ClaimKey("c2", "s1"))),
    ],
)
@pytest.mark.parametrize("ended", [False, True])
def test_a_probe_tells_whether_the_attempt_runs_or_ran_here(
    code: int, asked: Activation, ended: bool
) -> None:
    """By claim, secret, job and attempt together; and it starts nothing."""
    host = machine()
    claimed(host)
    activated(host, activation())
    if ended:
        for change in attempts.over(host, report(), NOW):
            host.apply(change)

    result, changes = attempts.activate(host, asked, NOW)

    assert (code, []) == (result.code, changes)
    assert bool(code) == bool(result.reason)


def test_a_probe_on_an_idle_claim_starts_nothing() -> None:
    """Where a real activation would be accepted."""
    host = machine()
    claimed(host)

    result, changes = attempts.activate(host, probe(), NOW)

    assert (NOT_KNOWN, []) == (result.code, changes)


DEEP = Expr("+".join(["1"] * 2000))


@pytest.mark.parametrize(
    "amount",
    [
        float("inf"),
        float("nan"),
        -1,
        -0.5,
        2**53,
        1e300,
        Expr('real("INF")'),
        Expr("1e308 * 10"),
        Expr("-7"),
        DEEP,
    ],
)
@pytest.mark.parametrize("name", ["RequestCpus", "RequestMemory", "RequestDisk"])
def test_what_is_no_amount_is_refused_with_a_sentence(name: str, amount: Scalar) -> None:
    """Not finite, negative, huge, or not to be evaluated."""
    reply, changes = requests.request_claims(machine(), request(KEY, ad={name: amount}), NOW)

    assert ([], []) == (reply.granted, changes)
    assert reply.reason


@pytest.mark.parametrize("lease", [0.0, -1.0, float("nan"), float("inf"), 1e300])
def test_a_lease_that_is_none_is_refused(lease: float) -> None:
    """A claim that never ends would outlive a lost schedd."""
    asked = msgspec.structs.replace(request(KEY), lease=lease)

    reply, changes = requests.request_claims(machine(), asked, NOW)

    assert ([], []) == (reply.granted, changes)
    assert "lease" in reply.reason


def test_a_start_that_cannot_be_evaluated_for_a_job_refuses_it() -> None:
    """As one that is false does."""
    host = machine("TARGET.Mine < 5")
    claimed(host, Mine=1)

    assert VacateCode.ActivationRefusedNoMatch == activated(host, activation(Mine=DEEP))


def test_a_machine_in_trouble_accepts_nothing_new_and_says_why() -> None:
    """
    What there is goes on: a claim is granted again, a repeated activation is answered, leases are renewed.
    """
    host = machine()
    claimed(host, KEY, ClaimKey("c2", "s2"))
    activated(host, activation())
    host.trouble = "the disk is full"

    reply, changes = requests.request_claims(host, request(KEY, ClaimKey("c3", "s3")), NOW)
    refused, none = attempts.activate(host, activation(1, key=ClaimKey("c2", "s2")), NOW)
    again, nothing = attempts.activate(host, activation(), NOW)
    renewal = Alive(schedd="schedd", claims=[KEY], deadline=NOW.clock + 100)

    assert (["c1"], "the disk is full", []) == ([g.claim for g in reply.granted], reply.reason, changes)
    assert (VacateCode.ActivationRefusedUnhealthy, "the disk is full", []) == (
        refused.code,
        refused.reason,
        none,
    )
    assert (0, []) == (again.code, nothing)
    later = msgspec.structs.replace(NOW, clock=NOW.clock + 10)
    assert any(isinstance(change, Renewed) for change in requests.alive(host, renewal, later)[1])
    ad = slot_ad(host, host.facts.slots[0], now=0.0)
    assert (False, "the disk is full") == (ad["Requirements"], ad["Trouble"])


def test_nothing_is_remembered_of_a_claim_that_is_gone() -> None:
    """Not even by what is said of it afterwards."""
    host = machine()
    claimed(host)
    activated(host, activation())
    host.apply(AttemptFinished("c1", JobId(1, 0), 1, 2, 0.0))
    host.apply(ClaimRemoved("c1"))
    host.apply(AttemptFinished("c1", JobId(1, 0), 1, 2, 0.0))

    assert [] == host.snapshot()


@pytest.mark.parametrize(("hour", "granted"), [(4, 0), (6, 1)])
def test_a_machine_may_open_at_an_hour(hour: int, granted: int) -> None:
    """START goes by the startd's clock, for the claim as for the attempt."""
    host = machine(start=f"time() % 86400 < {hour} * 900")

    assert granted == len(claimed(host).granted)
    assert (granted == 1) == (activated(host, activation()) == 0)
