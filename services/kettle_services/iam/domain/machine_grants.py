"""
What people have shown who let machines in for their own jobs, and what follows for the machines when it is good no more.  Pure.

A machine outlives the token that let it in by the life of its credential at the most, and not at all one that was withdrawn.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from kettle_services.iam.domain.joining_states import JoinToken, Worker
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.domain.state import Register, Session
from kettle_wire.events.iam import Grant, IdentityEvent, JoinTokenRevoked, WorkerLeft, WorkerRenewed

Changes = list[tuple[str, IdentityEvent]]

GRANT_OVER: Final = "its owner's credential"
"""Who removes a machine when what let it in is good no more."""


def of_account(person: str) -> Grant:
    """Of somebody who has an account at the pool, which knows him without a token."""
    return Grant(names=(f"user:{person}",), tokens=())


def over(register: Register, grant: Grant, *, now: float) -> str:
    """Why it is good no more, as the end of a sentence; empty: it is."""
    if (ban := register.ban_of(*grant.names, now=now)) is not None:
        return f"{ban.whom.partition(':')[2]} is banned"
    if any(register.is_revoked(token) for token in grant.tokens):
        return "the token with which it was let in was withdrawn"
    if grant.session and register.find(Session, f"session/{grant.session}") is None:
        return "the session in which it was let in is over"
    return ""


def require_good(register: Register, grant: Grant, *, now: float) -> None:
    """Raises Denied for one that lets no machine in any more."""
    if why := over(register, grant, now=now):
        raise Denied(Code.JOIN_REVOKED, f"the join token is good no more: {why}; make another one")


def renewed(register: Register, machine: str, *, lifetime: float, now: float) -> tuple[Worker, Changes]:
    """
    The machine with `lifetime` more seconds, and what is recorded; nothing if it has asked so early that it has more than half of them.

    Raises:
        Denied: its credential is not renewed, and why.
    """
    worker = register.find(Worker, f"worker/{machine}")
    if worker is None or worker.grant is None:
        raise Denied(
            Code.JOIN_NOT_RENEWED,
            f"the credential of {machine} is not renewed: no person has let it in for the own jobs",
        )
    why = over(register, worker.grant, now=now)
    if not why and worker.grant.ends and worker.grant.ends <= now:
        why = "the token with which it was let in has ended"
    if why:
        raise Denied(
            Code.JOIN_NOT_RENEWED,
            f"the credential of {machine} is not renewed: {why}; make another join token (kettle worker token create --own) and join again",
        )
    if worker.expires - now > lifetime / 2:
        return worker, []
    event = WorkerRenewed(worker=machine, expires=now + lifetime, at=now)
    later = msgspec.structs.replace(worker, expires=event.expires)
    return later, [(f"worker/{machine}", event)]


def withdrawn_tokens(register: Register, *, now: float) -> Changes:
    """Join tokens that let nobody in any more, because what their makers have shown is good no more."""
    return [
        (f"jointoken/{each.token}", JoinTokenRevoked(token=each.token, by=GRANT_OVER, at=now))
        for each in register.all(JoinToken)
        if each.grant is not None and not each.revoked and over(register, each.grant, now=now)
    ]


def strangers(register: Register, *, now: float) -> Iterator[Worker]:
    """Machines that have nothing to do in the pool any more."""
    for each in register.all(Worker):
        if each.grant is not None and over(register, each.grant, now=now):
            yield each


def gone(worker: Worker, *, now: float) -> Changes:
    """One of these is out."""
    return [(f"worker/{worker.worker}", WorkerLeft(worker=worker.worker, by=GRANT_OVER, at=now))]
