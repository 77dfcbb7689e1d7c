"""
The names of flocking: a schedd visits another pool, and its jobs run there.

In its own pool, a schedd calls a startd of another pool `pool/startd`, so that the name is unique in records, leases
and messages. In the other pool the schedd is a *visitor* `name@domain`, as in the pass that the administrator of that
pool has made; its submitters there are `submitter@domain`, and the ids of its claims begin with its name.
"""

import re
from typing import Final

from kettle_wire.subjects import untoken

POOL: Final = r"^[A-Za-z0-9_-]{1,64}$"
"""How a pool is called by those who visit it."""
VISITOR: Final = r"^[A-Za-z0-9_-]{1,64}@[A-Za-z0-9_.-]{1,128}$"
"""How a visitor is called by those whom it visits."""
_VISITOR: Final = re.compile(VISITOR)
_BETWEEN: Final = "/"


def abroad(pool: str, startd: str) -> str:
    """
    The name of a startd of another pool in the schedd's own pool; for its own pool (empty) the plain name.
    """
    return f"{pool}{_BETWEEN}{startd}" if pool else startd


def pool_of(startd: str) -> str:
    """The other pool of a startd, from its name in the schedd's own pool; empty: the own pool."""
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
    Why the ad of a submitter is not of the schedd under whose name it came; empty: it is, or it names none.

    Such a schedd is a visitor, or one of our own pool that has joined it by a token.
    """
    parts = key.split(".")
    if len(parts) == 2:
        return ""
    visitor = untoken(parts[1])
    if schedd != visitor:
        return f"it is an ad of {visitor} and names the schedd {schedd}"
    if is_visitor(visitor) and not is_guest(submitter, visitor):
        return f"it is an ad of {visitor} and names the submitter {submitter}, who is none of its guests"
    return ""
