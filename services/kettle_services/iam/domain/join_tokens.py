"""
Join tokens: `kettle-join-1.<id>.<secret>.<pin>`.

The secret is 256 random bits, so its plain SHA-256 cannot be turned back.  `pin` is the SHA-256 of what the joining machine can
recognize this pool by, so that a machine sends its secret to no other pool, and a pool sees when a token is another's.
"""

import hmac
import re
from hashlib import sha256
from typing import Final

import msgspec

from kettle_services.iam.domain.joining_states import JoinToken, Worker, worker_of
from kettle_services.iam.domain.machine_grants import require_good
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.domain.state import Register
from kettle_wire.events.iam import (
    IdentityEvent,
    Joins,
    JoinTokenExpired,
    JoinTokenMisused,
    JoinTokenRevoked,
    JoinTokenUsed,
    Misuse,
    WorkerJoined,
    WorkerLeft,
)
from kettle_wire.iam_http import JOIN_PREFIX

LOST_ANSWER_S: Final = 60.0
"""For so long a machine that asks again, with the same key, gets the same answer: the first one may have been lost."""

_LEASE: Final = re.compile(r"[a-z][a-z0-9-]*-(\d+-\d+|by-[0-9a-f]{10})")
"""Names of leases, which are known before their machines are made: people's own machines have others."""

EXPIRED: Final = "configuration"
"""Who removes a machine whose credential has ended by itself."""

_SENTENCES: Final[dict[Misuse, str]] = {
    "unknown": "this pool has made no such join token, or it is over",
    "secret": "the secret of the join token is wrong",
    "expired": "the join token came too late",
    "revoked": "the join token was withdrawn",
    "used": "the join token was used by another machine",
    "other_pool": "the join token is for another pool",
    "other_owner": "the join token is for machines of another owner",
    "banned": "the owner of the join token is banned",
}
_NEXT: Final = "; ask an administrator for a new one: kettle worker token create"


class JoinTokenParts(msgspec.Struct, frozen=True):
    """What a join token consists of."""

    token: str
    secret: str
    pin: str


class Joining(msgspec.Struct, frozen=True, kw_only=True):
    """What a machine says when it joins."""

    parts: JoinTokenParts
    name: str
    """The machine's name in the pool."""
    key: str
    """The public NKey that it has made."""
    owner: str = ""
    """Whose machine it says it is; empty: it does not say."""
    joins: Joins = "worker"
    people: str = ""
    """The public key with which an access point vouches for its people."""
    address: str


class Misused(Denied):
    """A join token that does not admit the machine: the alarm has to be recorded."""

    def __init__(self, why: Misuse) -> None:
        super().__init__(Code(f"join.{why}"), f"{_SENTENCES[why]}{_NEXT}")
        self.why: Final[Misuse] = why


def digest(secret: str) -> str:
    """What is recorded of a secret."""
    return sha256(secret.encode()).hexdigest()


def proves(secret: str, recorded: str) -> bool:
    """Whether a secret is the one that was recorded; takes the same time whatever is wrong with it."""
    return bool(recorded) and hmac.compare_digest(digest(secret), recorded)


def parse(text: str) -> JoinTokenParts:
    """Take a join token apart; raises Denied for what is none."""
    parts = text.strip().split(".")
    if len(parts) != 4 or parts[0] != JOIN_PREFIX or not all(parts) or not text.isascii():
        raise Denied(
            Code.JOIN_MALFORMED,
            f"this is no join token: it has four parts, {JOIN_PREFIX}.ID.SECRET.PIN, all in one line",
            status=400,
        )
    return JoinTokenParts(*parts[1:])


def stream(token: str) -> str:
    """The stream of a join token."""
    return f"jointoken/{token}"


def revoked(register: Register, token: str, *, by: str, now: float) -> list[tuple[str, IdentityEvent]]:
    """Withdraw a token; withdrawn twice is withdrawn once."""
    found = register.find(JoinToken, stream(token))
    if found is None:
        raise Denied(
            Code.JOIN_UNKNOWN,
            f"there is no join token {token}; see which there are: kettle worker token list",
            status=404,
        )
    return [] if found.revoked else [(stream(token), JoinTokenRevoked(token=token, by=by, at=now))]


class Lives(msgspec.Struct, frozen=True, kw_only=True):
    """For how many seconds the credential of a machine is valid at the most."""

    pool: float
    """Of any; 0: without end."""
    own: float
    """Of one that a person has let in; it is renewed as long as what that person has shown is good."""

    @property
    def of_own(self) -> float:
        """The one that counts for those."""
        return min(self.pool or self.own, self.own)


class Joined(msgspec.Struct, frozen=True):
    """A machine that is let in, and what is recorded of it: nothing, if it only asks again."""

    worker: Worker
    changes: list[tuple[str, IdentityEvent]]


def joined(register: Register, joining: Joining, *, pin: str, lives: Lives, now: float) -> Joined:
    """
    Let a machine in; `pin` is this pool's.

    Raises:
        Misused: the token does not admit it.
        Denied: its name is taken by another machine.
    """
    token = register.find(JoinToken, stream(joining.parts.token))
    if not hmac.compare_digest(joining.parts.pin, pin):
        raise Misused("other_pool")
    if token is None:
        raise Misused("unknown")
    if not proves(joining.parts.secret, token.hash):
        raise Misused("secret")
    if again := _again(register, token, joining, now):
        return Joined(again, [])
    _require_meant(register, token, joining)
    if (why := _misuse(register, token, joining, now)) is not None:
        raise Misused(why)
    if token.grant is not None:
        require_good(register, token.grant, now=now)
    known = register.find(Worker, f"worker/{joining.name}")
    for other in register.all(Worker):
        if other.key == joining.key and other.worker != joining.name:
            raise Denied(
                Code.JOIN_NAME_TAKEN,
                f"this key is the one of {other.worker} already; join from a directory of its own",
                status=409,
            )
    there = known is not None and (not known.expires or now < known.expires)
    if known is not None and there and known.key != joining.key:
        raise Denied(
            Code.JOIN_NAME_TAKEN,
            f"there is a machine {joining.name} already; join under another name, or have it removed first: "
            f"kettle worker leave {joining.name}",
            status=409,
        )
    use = JoinTokenUsed(
        token=token.token, name=joining.name, key=joining.key, address=joining.address, at=now
    )
    event = WorkerJoined(
        worker=joining.name,
        joins=token.joins,
        key=joining.key,
        owner=token.owner,
        token=token.token,
        expires=_expires(token, lives, now),
        at=now,
        group=token.group,
        leased=bool(token.machine),
        grant=token.grant,
    )
    return Joined(worker_of(event), [(stream(token.token), use), (f"worker/{joining.name}", event)])


def _require_meant(register: Register, token: JoinToken, joining: Joining) -> None:
    """
    Raise Denied for a machine that the token is not for, and for one that would be taken for that of a lease.
    """
    if token.joins != joining.joins:
        raise Denied(
            Code.JOIN_KIND,
            f"the join token admits a {token.joins}, not a {joining.joins}: kettle {token.joins} join",
        )
    if token.machine and joining.name != token.machine:
        raise Denied(
            Code.JOIN_OTHER_MACHINE, f"the join token admits the machine {token.machine} and no other"
        )
    of_lease = any(each.machine == joining.name and not each.revoked for each in register.all(JoinToken))
    own = token.grant is not None
    if not token.machine and (of_lease or (own and _LEASE.fullmatch(joining.name))):
        raise Denied(
            Code.JOIN_NAME_TAKEN,
            f"{joining.name} is the name of a lease, or could be one's, and the machine is of none; join under another name",
            status=409,
        )


def require_free(register: Register, machine: str, *, now: float) -> None:
    """
    Raise Denied if a machine that is of no lease has the name of one: it would speak for that, and what is made for it could not
    join.
    """
    known = register.find(Worker, f"worker/{machine}")
    if known is not None and not known.leased and (not known.expires or now < known.expires):
        raise Denied(
            Code.JOIN_NAME_TAKEN,
            f"there is a machine {machine} already, and it is of no lease; have it removed: kettle worker leave {machine}",
            status=409,
        )


def _expires(token: JoinToken, lives: Lives, now: float) -> float:
    """When the credential of a machine ends: the shortest life that is said for it counts; 0: never."""
    longest = lives.of_own if token.grant is not None else lives.pool
    said = [each for each in (longest, token.life) if each]
    return now + min(said) if said else 0.0


def _again(register: Register, token: JoinToken, joining: Joining, now: float) -> Worker | None:
    """The machine that has just joined with this token and this key, and did not hear of it."""
    use = next((use for use in token.uses if use.key == joining.key), None)
    worker = register.find(Worker, f"worker/{joining.name}")
    if use is None or worker is None or (use.name, worker.key) != (joining.name, joining.key):
        return None
    return worker if now - use.at <= LOST_ANSWER_S else None


def _misuse(register: Register, token: JoinToken, joining: Joining, now: float) -> Misuse | None:
    if token.revoked:
        return "revoked"
    if now >= token.expires:
        return "expired"
    if len(token.uses) >= token.max_uses or any(use.key == joining.key for use in token.uses):
        return "used"
    if token.owner and joining.owner not in {"", token.owner}:
        return "other_owner"
    if token.owner and register.ban_of(f"user:{token.owner}", now=now):
        return "banned"
    if register.ban_of(f"worker:{joining.name}", now=now):
        return "banned"
    return None


def misused(joining: Joining, why: Misuse, *, more: int, now: float) -> list[tuple[str, IdentityEvent]]:
    """The alarm."""
    event = JoinTokenMisused(
        token=joining.parts.token[:64], why=why, name=joining.name, address=joining.address, more=more, at=now
    )
    return [("alarm/join", event)]


def over(register: Register, *, kept: float, now: float) -> list[tuple[str, IdentityEvent]]:
    """
    Forget tokens that admit nobody any more, `kept` seconds after their end: so long a misuse is known for
    what it is.
    """
    return [
        (stream(token.token), JoinTokenExpired(token=token.token, at=now))
        for token in register.all(JoinToken)
        if now >= token.expires + kept
    ]


def require_own_room(register: Register, person: str, *, more: int, limit: int, now: float) -> None:
    """
    Raise Denied if somebody would have more machines of his own, or could have them, than the pool lets people have.
    """
    there = sum(
        each.owner == person and not each.leased and (not each.expires or now < each.expires)
        for each in register.all(Worker)
    )
    coming = sum(
        each.max_uses - len(each.uses)
        for each in register.all(JoinToken)
        if each.grant is not None and each.owner == person and not each.revoked and now < each.expires
    )
    if there + coming + more > limit:
        raise Denied(
            Code.JOIN_TOO_MANY,
            f"{person} has {there} machine(s) and join tokens for {coming} more, and may have {limit} in all ([iam] "
            "machines_per_person); ask an administrator: kettle worker token create --owner",
        )


def ended(register: Register, *, now: float) -> list[tuple[str, IdentityEvent]]:
    """
    Forget machines of leases and those that people have let in when their credentials have ended: nobody asks for them to be removed
    any more.
    """
    return [
        (f"worker/{worker.worker}", WorkerLeft(worker=worker.worker, by=EXPIRED, at=now))
        for worker in register.all(Worker)
        if (worker.leased or worker.grant is not None) and worker.expires and worker.expires <= now
    ]


def withdrawn(register: Register, worker: str, *, by: str, now: float) -> list[tuple[str, IdentityEvent]]:
    """
    Have a lease be over: the credential of its machine is invalid, and no machine joins under its name any more. Said of one
    that is over already it changes nothing.

    Raises:
        Denied: there is a machine of this name, and it is of no lease.
    """
    known = register.find(Worker, f"worker/{worker}")
    if known is not None and not known.leased:
        raise Denied(
            Code.JOIN_KIND, f"{worker} is no machine of a lease: who administers the pool removes it"
        )
    tokens = [
        (stream(token.token), JoinTokenRevoked(token=token.token, by=by, at=now))
        for token in register.all(JoinToken)
        if token.machine == worker and not token.revoked
    ]
    gone = [(f"worker/{worker}", WorkerLeft(worker=worker, by=by, at=now))] if known is not None else []
    return [*tokens, *gone]


def left(register: Register, worker: str, *, by: str, now: float) -> list[tuple[str, IdentityEvent]]:
    """Have the credential of a machine be invalid; raises Denied for one that is not known."""
    if register.find(Worker, f"worker/{worker}") is None:
        raise Denied(
            Code.JOIN_UNKNOWN_WORKER,
            f"no machine {worker} has joined; see which have: kettle worker list or kettle schedd list",
            status=404,
        )
    return [(f"worker/{worker}", WorkerLeft(worker=worker, by=by, at=now))]


def left_own(register: Register, worker: str, *, person: str, now: float) -> list[tuple[str, IdentityEvent]]:
    """
    Have the credential of a machine be invalid that this person has let in.

    Raises:
        Denied: no such machine runs his jobs, or an administrator has let it in.
    """
    known = register.find(Worker, f"worker/{worker}")
    if known is None or known.owner != person:
        raise Denied(
            Code.JOIN_UNKNOWN_WORKER,
            f"no machine {worker} has joined for the jobs of {person}; see which have: kettle worker list",
            status=404,
        )
    if known.grant is None:
        raise Denied(
            Code.JOIN_KIND,
            f"{person} has not let {worker} in: who administers the pool removes it (kettle worker leave {worker})",
        )
    return left(register, worker, by=person, now=now)


def revoked_own(
    register: Register, token: str, *, person: str, now: float
) -> list[tuple[str, IdentityEvent]]:
    """Withdraw a join token that this person has made; raises Denied for one that he has not."""
    found = register.find(JoinToken, stream(token))
    if found is None or found.grant is None or found.owner != person:
        raise Denied(
            Code.JOIN_UNKNOWN,
            f"{person} has made no join token {token}; see which there are: kettle worker token list",
            status=404,
        )
    return revoked(register, token, by=person, now=now)
