"""
The accounts of a pool on the bus, and what each of them uses of the others.

    POOL       the pool's services, with JetStream
    PEOPLE     persons, administrators, and programs that read the published events
    WORKERS    the startds of the machines
    OUTSIDERS  schedds of other pools that send jobs here, and collectors of others that forward ads
    JOINED     the services of access points that have joined by a token
    AUTH       nobody but the one who answers the server's question who a person is that shows a token; see `callout`
    SYSTEM     the server's own, for who tells it about accounts

What somebody in one account asks in another is mapped by the server: the answer goes to a place that the server has made,
and from there to the asker's own account.  So nobody can have a service, or JetStream, write to a subject of the pool by
naming that as the place for the answer, as is possible where all share one account.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from kettle_wire.commands.catalogue import ENDPOINTS, open_to
from kettle_wire.commands.log import READ_FRAMES
from kettle_wire.endpoint import Caller
from kettle_wire.subjects import API, FORWARDED, GUESTS_API, Subjects


class Account(StrEnum):
    """Those above."""

    SYSTEM = "SYSTEM"
    POOL = "POOL"
    PEOPLE = "PEOPLE"
    WORKERS = "WORKERS"
    OUTSIDERS = "OUTSIDERS"
    JOINED = "JOINED"
    AUTH = "AUTH"


_POOL, _PEOPLE, _WORKERS, _OUTSIDERS = Account.POOL, Account.PEOPLE, Account.WORKERS, Account.OUTSIDERS
_JOINED: Final = Account.JOINED

_VISITORS: Final = ("schedd", "shadow")
"""The roles in which a schedd of another pool and its shadow answer here."""

_OF_ACCESS_POINTS: Final = ("schedd", "shadow", "master", READ_FRAMES.role)
"""The roles in which an access point that has joined answers."""


class Use(msgspec.Struct, frozen=True):
    """Subjects of the account `of` that the account `by` uses."""

    of: Account
    by: Account
    subject: str
    heard: bool = False
    """`of` speaks there and `by` hears it; otherwise `by` asks there and `of` answers."""
    local: str = ""
    """What `by` calls it, with `$1` for the first `*`; empty: the same."""
    many: bool = False
    """A question has more than one answer."""
    answered_within: float = 3600.0
    """
    Seconds for which the server keeps the place for an answer, some 800 bytes, if none comes; where there may be many, always.
    """


def uses(subjects: Subjects) -> Sequence[Use]:
    """Everything that passes between the accounts of a pool."""
    roles = sorted({endpoint.role for endpoint in ENDPOINTS} - {"startd"})
    ads, private = subjects.ads, subjects.private_ads
    monitor, work, objects = subjects.monitor_stream, subjects.work_stream, subjects.object_stream
    return [
        *(_asked(_POOL, _PEOPLE, subjects.commands_at(role)) for role in roles),
        *(_asked(_WORKERS, by, subjects.commands_at("startd")) for by in (_POOL, _PEOPLE, _OUTSIDERS)),
        *(_asked(_POOL, _WORKERS, subjects.commands_at(role)) for role in ("shadow", "iam", "scaler")),
        _asked(_WORKERS, _POOL, subjects.commands_at("master")),
        # A visiting schedd's name has an `@`, and no schedd of ours has.
        *(_asked(_OUTSIDERS, _POOL, subjects.commands_at(role)) for role in _VISITORS),
        Use(_POOL, _PEOPLE, subjects.events_all, heard=True),
        Use(_POOL, _PEOPLE, subjects.tail_all, heard=True),
        Use(_WORKERS, _POOL, subjects.notices("startd"), heard=True),
        *_read(_PEOPLE, monitor),
        *_read(_OUTSIDERS, work),
        *_made(subjects, _PEOPLE, monitor),
        *_made(subjects, _OUTSIDERS, work),
        *(_api(_WORKERS, f"STREAM.INFO.{stream}") for stream in (f"KV_{ads}", f"KV_{private}", work)),
        _api(_WORKERS, f"DIRECT.GET.{objects}.>"),
        _asked(_POOL, _WORKERS, subjects.work_all),
        _asked(_POOL, _WORKERS, f"$KV.{ads}.Machine.*.*"),
        *(_asked(_POOL, _WORKERS, f"$KV.{ads}.{ad_type}.*") for ad_type in ("StartDaemon", "DaemonMaster")),
        _asked(_POOL, _WORKERS, f"$KV.{private}.*.*"),
        _asked(_POOL, _OUTSIDERS, f"$KV.{ads}.Submitter.*.*"),
        _asked(_POOL, _OUTSIDERS, f"$KV.{ads}.{FORWARDED}.>"),
        *_of_access_points(subjects),
    ]


def _of_access_points(subjects: Subjects) -> list[Use]:
    """
    Between the pool and those that have joined: each asks the other by its name, and what they have JetStream do is written
    in their own account.
    """
    asked = open_to(Caller.SCHEDD, Caller.SHADOW, Caller.MASTER)
    roles = sorted({endpoint.role for endpoint in asked} - {"startd", *_OF_ACCESS_POINTS})
    ads, leases, people = subjects.ads, subjects.leases, subjects.people
    return [
        *(_asked(_POOL, _JOINED, subjects.commands_at(role)) for role in roles),
        _asked(_WORKERS, _JOINED, subjects.commands_at("startd")),
        *(_asked(_JOINED, _POOL, subjects.commands_at(role)) for role in _OF_ACCESS_POINTS),
        Use(_WORKERS, _JOINED, subjects.notices("startd"), heard=True),
        *(Use(_POOL, _JOINED, subjects.notices(role), heard=True) for role in ("collector", "negotiator")),
        *(Use(_JOINED, _POOL, subjects.notices(role), heard=True) for role in ("schedd", "shadow")),
        *_read(_JOINED, "*"),
        *_made(subjects, _JOINED, "*"),
        Use(_POOL, _JOINED, subjects.stream_requests("*"), local=f"{GUESTS_API}.STREAM.CREATE.$1"),
        _api(_JOINED, f"DIRECT.GET.KV_{people}.>"),
        _asked(_POOL, _JOINED, subjects.events_all),
        _asked(_POOL, _JOINED, subjects.objects_all),
        *(_asked(_POOL, _JOINED, f"$KV.{ads}.{ad_type}.*") for ad_type in ("Scheduler", "DaemonMaster")),
        _asked(_POOL, _JOINED, f"$KV.{ads}.Submitter.*.*"),
        _asked(_POOL, _JOINED, f"$KV.{leases}.*"),
    ]


def _asked(of: Account, by: Account, subject: str) -> Use:
    return Use(of, by, subject)


_PULLED_WITHIN_S: Final = 90.0
"""Longer than a collector lets a pull wait for messages."""
_ACKNOWLEDGED_WITHIN_S: Final = 10.0
_MADE_WITHIN_S: Final = 30.0


def _api(by: Account, call: str) -> Use:
    """A call of the interface of the pool's JetStream."""
    return Use(_POOL, by, f"{API}.{call}", local=_local(call))


def _local(call: str) -> str:
    """What members of other accounts call it, with `$1` for the first `*`."""
    parts, number = call.split("."), 0
    for place, part in enumerate(parts):
        if part == "*":
            number += 1
            parts[place] = f"${number}"
    return f"{GUESTS_API}.{'.'.join(parts)}"


def _made(subjects: Subjects, by: Account, stream: str) -> list[Use]:
    """
    Consumers, which a collector makes: JetStream would deliver wherever it is told, with rights of its own.
    """
    return [
        Use(
            _POOL,
            by,
            f"{subjects.readers(stream)}.{of}",
            local=_local(f"CONSUMER.CREATE.{stream}.{of}"),
            answered_within=_MADE_WITHIN_S,
        )
        for of in ("*.>", "*")
    ]


def _read(by: Account, stream: str) -> list[Use]:
    return [
        _api(by, f"STREAM.INFO.{stream}"),
        _api(by, f"CONSUMER.INFO.{stream}.*"),
        _api(by, f"CONSUMER.DELETE.{stream}.*"),
        msgspec.structs.replace(
            _api(by, f"CONSUMER.MSG.NEXT.{stream}.*"), many=True, answered_within=_PULLED_WITHIN_S
        ),
        Use(_POOL, by, f"$JS.ACK.{stream}.>", answered_within=_ACKNOWLEDGED_WITHIN_S),
    ]
