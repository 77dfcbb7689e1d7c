"""Proofs that a person may look into a job."""

import pytest

from kettle.auth.job_access_proof import proof, proves
from kettle_wire.jobs import JobId

JOB = JobId(3, 4)
MADE = proof("secret", claim="c#1", job=JOB, attempt=2, person="anna")


def test_a_proof_is_good_for_what_it_was_made_for() -> None:
    """A proof is valid for one person, job and attempt, and for one secret."""
    assert proves(MADE, "secret", claim="c#1", job=JOB, attempt=2, person="anna")


@pytest.mark.parametrize(
    ("secret", "claim", "job", "attempt", "person"),
    [
        ("other", "c#1", JOB, 2, "anna"),
        ("secret", "c#2", JOB, 2, "anna"),
        ("secret", "c#1", JobId(3, 5), 2, "anna"),
        ("secret", "c#1", JOB, 3, "anna"),
        ("secret", "c#1", JOB, 2, "berta"),
        ("secret", "c#1\0" + "3.4", JobId(2, 0), 2, "anna"),
    ],
)
def test_and_for_nothing_else(secret: str, claim: str, job: JobId, attempt: int, person: str) -> None:
    """Not for another person, another attempt or with another secret."""
    assert not proves(MADE, secret, claim=claim, job=job, attempt=attempt, person=person)
    assert not proves("", secret, claim=claim, job=job, attempt=attempt, person=person)
