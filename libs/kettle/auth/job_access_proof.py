"""
The proof that a person may look into a job that runs: made by the schedd, checked by the machine.

Both know the secret of the job's claim, and nobody else but its shadow does. A proof names the person, the job and the
attempt, so it is worth nothing to another person, and nothing after the attempt. The shadow makes its own.
"""

import hmac
from typing import Final

from kettle_wire.jobs import JobId

SHADOW: Final = "\0shadow"
"""Whom a proof names that a shadow has made for itself: no person is called so."""


def proof(secret: str, *, claim: str, job: JobId, attempt: int, person: str) -> str:
    """In hexadecimal digits; who may have one, its maker decides."""
    said = "\0".join(("access", claim, str(job), str(attempt), person))
    return hmac.new(secret.encode(), said.encode(), "sha256").hexdigest()


def proves(given: str, secret: str, *, claim: str, job: JobId, attempt: int, person: str) -> bool:
    """Whether it was made with this secret for this person and this attempt."""
    wanted = proof(secret, claim=claim, job=job, attempt=attempt, person=person)
    return hmac.compare_digest(wanted.encode(), given.encode())
