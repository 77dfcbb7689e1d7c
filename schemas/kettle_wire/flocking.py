"""
The names of flocking: a schedd visits another pool, and its jobs run there.

At home a startd of another pool is known as `pool/startd`, so that it is confused with no other in records, leases and
conversations. In the other pool the schedd is a *visitor* `name@domain`, as that pool's administrator has written it on
its pass; its submitters are guests `submitter@domain`, and the ids of its claims begin with its name.
"""

import re
from typing import Final

from kettle_wire.subjects import unkey

POOL: Final = r"^[A-Za-z0-9_-]{1,64}$"
"""How a pool is called by those who visit it."""
VISITOR: Final = r"^[A-Za-z0-9_-]{1,64}@[A-Za-z0-9_.-]{1,128}$"
"""How a visitor is called by those whom it visits."""
_VISITOR: Final = re.compile(VISITOR)
_BETWEEN: Final = "/"


def abroad(pool: str, startd: str) -> str:
    """How a startd of another pool is known at home; of the own pool (empty): by its name."""
    return f"{pool}{_BETWEEN}{startd}" if pool else startd


def pool_of(startd: str) -> str:
    """The other pool that a startd is of, as it is known at home; empty: it is of the own."""
    pool, found, _ = startd.partition(_BETWEEN)
    return pool if found else ""


def name_there(startd: str) -> str:
    """How a startd is called in its own pool."""
    return startd.partition(_BETWEEN)[2] if pool_of(startd) else startd


def is_visitor(name: str) -> bool:
    """Whether a schedd can be admitted under this name."""
    return _VISITOR.fullmatch(name) is not None


def domain_of(visitor: str) -> str:
    """Where a visitor and its guests come from."""
    return visitor.partition("@")[2]


def guest(submitter: str, visitor: str) -> str:
    """
    How a submitter is called, and charged, where its schedd visits.

    Dots go: there they would put it into an accounting group of that pool.
    """
    return f"{submitter.replace('.', '/')}@{domain_of(visitor)}"


def is_guest(submitter: str, visitor: str) -> bool:
    """Whether a submitter can be one of a visitor's."""
    name, found, domain = submitter.rpartition("@")
    return bool(found and name) and domain == domain_of(visitor) and "." not in name


def is_claim_of(claim: str, visitor: str) -> bool:
    """Whether a claim's public id can be one of a visitor's."""
    return claim.startswith(f"{visitor}#")


def stranger(key: str, submitter: str, schedd: str) -> str:
    """
    Why the ad of a submitter is not of the visitor under whose name it came; empty: it is, or it is of our own pool.
    """
    parts = key.split(".")
    if len(parts) == 2:
        return ""
    visitor = unkey(parts[1])
    if schedd != visitor:
        return f"it is an ad of {visitor} and names the schedd {schedd}"
    if not is_guest(submitter, visitor):
        return f"it is an ad of {visitor} and names the submitter {submitter}, who is none of its guests"
    return ""
