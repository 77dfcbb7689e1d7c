"""
What each role may do on the bus: the subjects on which it may publish and to which it may subscribe.

Each client publishes only under its own identity and subscribes only to its own inbox, so a command's subject names the
caller. Who answers requests may publish where answers are awaited, and nowhere that an asker could name instead. JetStream's
interface is opened call by call, for the streams and buckets that the role needs.

Guests are those whom the server keeps in accounts beside the pool's own (`kettle.auth.trust.accounts`): people, workers,
outsiders. Where there is one account for all (a server of somebody else, configured by hand) nobody is.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kettle.auth.bus_use import BusUse
from kettle.auth.open_to_access_points import OF_THE_POOL
from kettle.auth.open_to_bearers import OUTLIVES_A_TOKEN
from kettle_wire.commands.catalogue import open_to
from kettle_wire.commands.job_credentials import END_JOB_TOKENS, ISSUE_JOB_TOKENS
from kettle_wire.commands.log import READ_FRAMES
from kettle_wire.commands.queue import SUBMIT_FROM_JOB
from kettle_wire.commands.spooling import SPOOL_JOBS_FROM_JOB, SPOOL_PARTS
from kettle_wire.commands.submissions import SUBMIT_MANY_FROM_JOB
from kettle_wire.endpoint import Caller
from kettle_wire.identity import Identity, bearer, daemon
from kettle_wire.subjects import (
    OFFLINE,
    SILENT,
    Subjects,
    ad_key,
    forwarded_key,
    machine_key,
    slot_key,
    submitters_key,
    token,
)

SHARDS: Final[Mapping[str, Sequence[str]]] = {
    "schedd": ("schedd.schedd",),
    "collector": ("collector",),
    "negotiator": ("negotiator",),
    "accounting": ("accounting",),
    "iam": ("identity",),
    "dagman": ("dagman.schedd",),
    "ce": ("ce.schedd",),
    "sessions": ("sessions.schedd",),
    "scaler": ("scaler",),
}
"""The shards that each role owns in a personal pool; a larger one names its own."""

_ADS: Final[Mapping[str, Sequence[str]]] = {
    "schedd": ("Scheduler", "Submitter"),
    "collector": ("Collector", "Absent", SILENT),
    "scaler": (OFFLINE,),
    "negotiator": ("Negotiator",),
    "accounting": ("Accounting",),
    "master": ("DaemonMaster",),
}
_FOLLOWS_EVENTS_OF: Final[Mapping[str, Sequence[str]]] = {
    "shadow": ("schedd",),
    "accounting": ("schedd", "collector", "negotiator"),
    "audit": ("schedd", "collector", "negotiator", "iam", "dagman", "ce", "scaler", "sessions"),
    "dagman": ("schedd",),
    "sessions": ("schedd",),
    "gateway": ("schedd", "collector", "negotiator", "accounting", "ce", "scaler"),
}
_FOLLOWS_ADS: Final = ("collector", "negotiator", "scaler")
_CALLERS: Final = frozenset(caller.value for caller in Caller)

STARTD: Final = Caller.STARTD.value
"""The role of what runs on a machine, whose identity is a worker's."""

CE: Final = Caller.CE.value
"""The role of a compute entrypoint."""

ADMINISTRATOR: Final = Caller.ADMINISTRATOR.value
"""The role of a person who may also switch the daemons of every host."""

READER: Final = "reader"
"""The role of a person whose token permits to look, and nothing else."""

SUBMITTER: Final = "submitter"
"""The role of a job whose token permits to submit in its owner's name: it does nothing to jobs that are there."""

_SUBMITS: Final = (SUBMIT_FROM_JOB, SUBMIT_MANY_FROM_JOB, SPOOL_PARTS, SPOOL_JOBS_FROM_JOB)

BEARER: Final = "bearer"
"""The role of a person who has shown a token."""

BEARING_ADMINISTRATOR: Final = "bearing-administrator"
"""The role of a person who has shown a token and administers the pool."""

_AS: Final[Mapping[str, str]] = {BEARER: Caller.USER.value, BEARING_ADMINISTRATOR: ADMINISTRATOR}
"""What bearers may ask for, save what outlives the token that they have shown."""

_WITH_A_TOKEN: Final[Mapping[str, str]] = {account: bearers for bearers, account in _AS.items()}

VISITOR: Final = Caller.VISITOR.value
"""The role of a schedd of another pool, with its shadow, that sends jobs here."""

FORWARDER: Final = "forwarder"
"""The role of a collector of another pool that forwards its ads here."""

JOINED: Final[Mapping[str, str]] = {
    "joined-schedd": "schedd",
    "joined-shadow": "shadow",
    "joined-master": "master",
}
"""The roles of the services of an access point that has joined by a token, and what they are elsewhere."""

JOINED_SHARDS: Final = "joined"
"""In what says who owns which shards: those of access points that have joined."""

MONITOR: Final = "monitor"
"""The role of a program outside of the pool that may read the published events of everybody."""


def permissions(
    role: str,
    subjects: Subjects,
    identity: Identity,
    *,
    shards: Mapping[str, Sequence[str]] = SHARDS,
    guest: bool = False,
) -> tuple[list[str], list[str]]:
    """
    Where `identity` may publish, and to what it may subscribe; `role` is a service's, `user` for a person,
    `reader` for one who may only look, `submitter` for a job that submits, `administrator` for one who runs the pool, `bearer`
    and `bearing-administrator` for who has shown a token, `monitor`, `visitor` or `forwarder`.

    `shards`: the names of the shards that each role owns; `guest`: it is in an account beside the pool's own.
    """
    bus = BusUse(subjects, guest=guest)
    match role:
        case "visitor":
            return _visitors(bus, identity)
        case "startd":
            return _workers(bus, identity)
        case _ if role in JOINED:
            return _joined(bus, JOINED[role], identity)
        case "forwarder":  # puts ads under its own name, and takes them away; it reads and asks nothing
            return [f"$KV.{subjects.ads}.{forwarded_key(identity.name, '>')}"], _inbox(identity)
        case "monitor":
            # Clients that filter nothing leave the filter out of the request's subject.
            stream = subjects.monitor_stream
            everything = [*bus.reads(stream, ">"), f"{bus.api}.CONSUMER.CREATE.{stream}.*"]
            return everything, [*_inbox(identity), subjects.tail_all]
        case _:
            return (
                _people(bus, role, identity)
                if identity.kind == "user"
                else _services(bus, role, identity, shards)
            )


def _inbox(identity: Identity) -> list[str]:
    return [f"{identity.inbox}.>"]


def _people(bus: BusUse, role: str, identity: Identity) -> tuple[list[str], list[str]]:
    """
    Everybody who may query the queue may follow it: frames are published live, but their stream is closed to people.

    An account may speak as who has shown a token of its name as well, which is to have less.
    """
    if lesser := _WITH_A_TOKEN.get(role):
        may, hears = _one_person(bus, role, identity)
        may_too, hears_too = _one_person(bus, lesser, bearer(identity.name))
        return list(dict.fromkeys([*may, *may_too])), list(dict.fromkeys([*hears, *hears_too]))
    return _one_person(bus, role, identity)


def _one_person(bus: BusUse, role: str, identity: Identity) -> tuple[list[str], list[str]]:
    subjects = bus.subjects
    own = bus.reads(subjects.monitor_stream, subjects.monitor(identity.name))
    heard = [*_inbox(identity), subjects.events_all, subjects.tail_of(identity.name)]
    return [*_asks(role, subjects, identity), *own], heard


def _services(
    bus: BusUse, role: str, identity: Identity, shards: Mapping[str, Sequence[str]]
) -> tuple[list[str], list[str]]:
    subjects = bus.subjects
    publish = [
        *_asks(role, subjects, identity),
        *bus.answers,
        *_writes_ads(bus, role),
        *_owns_shards(bus, role, shards),
        *_keeps_work(bus, role),
        *_publishes_events(bus, role),
        *_makes_readers(bus, role, shards),
        *_knows_people(bus, role),
        *_knows_owners(bus, role),
        *_reports_of_batch_systems(bus, role, shards),
        _notices(subjects, role),
    ]
    for owner in _FOLLOWS_EVENTS_OF.get(role, ()):
        for shard in shards.get(owner, ()):
            publish += bus.reads(subjects.event_stream(shard), subjects.events(shard))
    if role in _FOLLOWS_ADS:
        publish += bus.reads(f"KV_{subjects.ads}", f"$KV.{subjects.ads}.>")
    subscribe = [*_inbox(identity), _notices(subjects, "*"), "$SRV.*"]
    if role == "collector":
        subscribe += [subjects.readers(">"), subjects.stream_requests("*")]
    for served in (role, READ_FRAMES.role) if shards.get(role) else (role,):
        subscribe += [subjects.commands_to(served), *_found_as(served)]
    if role == CE:
        for name in shards.get(role, ()):
            subscribe += [subjects.commands_of(STARTD, name), *_found_as(STARTD)]
    return publish, subscribe


def _workers(bus: BusUse, identity: Identity) -> tuple[list[str], list[str]]:
    """
    A startd advertises itself and its slots, answers commands and reports, all of it below its own name. So does the master
    of a machine that has nothing else, and shares the name.
    """
    subjects, name = bus.subjects, identity.name
    ads, private, slot = subjects.ads, subjects.private_ads, _every_slot
    publish = [
        *_asks(STARTD, subjects, identity),
        *bus.answers,
        *bus.makes(f"KV_{ads}"),
        f"$KV.{ads}.{slot(machine_key(name, 'x'))}",
        *(f"$KV.{ads}.{ad_key(ad_type, name)}" for ad_type in ("StartDaemon", "DaemonMaster")),
        *bus.makes(f"KV_{private}"),
        f"$KV.{private}.{slot(slot_key(name, 'x'))}",
        *bus.makes(subjects.work_stream),
        subjects.work_by(name),
        f"{bus.api}.DIRECT.GET.{subjects.object_stream}.{subjects.objects_all}",
        subjects.notice(STARTD, name),
    ]
    subscribe = [*_inbox(identity), "$SRV.*"]
    for role in (STARTD, "master"):
        subscribe += [subjects.commands_of(role, name), *_found_as(role)]
    return publish, subscribe


def _asks(role: str, subjects: Subjects, identity: Identity) -> list[str]:
    """The commands that declare this role among their callers; an administrator is a user, too."""
    if role in _AS:
        lasting = {subjects.commands_by(identity.token, each.role, each.verb) for each in OUTLIVES_A_TOKEN}
        return [each for each in _asks(_AS[role], subjects, identity) if each not in lasting]
    if role in {READER, SUBMITTER}:
        more = _SUBMITS if role == SUBMITTER else ()
        return [
            subjects.commands_by(identity.token, endpoint.role, endpoint.verb)
            for endpoint in open_to(Caller.USER)
            if endpoint.reads or endpoint in more
        ]
    if role not in _CALLERS:
        return []
    caller = Caller(role)
    callers = (caller, Caller.USER) if caller is Caller.ADMINISTRATOR else (caller,)
    return [
        subjects.commands_by(identity.token, endpoint.role, endpoint.verb) for endpoint in open_to(*callers)
    ]


def _visitors(bus: BusUse, identity: Identity) -> tuple[list[str], list[str]]:
    """
    A visitor asks startds about its own claims, publishes the demand of its submitters, and receives its matches and
    reports.

    All of this is under its own name: it can neither read nor write anything of others.
    """
    subjects, name = bus.subjects, identity.name
    publish = [
        *_asks(VISITOR, subjects, identity),
        *bus.answers,
        f"$KV.{subjects.ads}.{_every_slot(submitters_key(name, 'x'))}",
        *bus.reads(subjects.work_stream, subjects.work_of(name), subjects.work_reader(name)),
    ]
    subscribe = [*_inbox(identity), "$SRV.*"]
    for role in ("schedd", "shadow"):
        subscribe += [subjects.commands_of(role, name), *_found_as(role)]
    return publish, subscribe


def _every_slot(key: str) -> str:
    return key.removesuffix("x") + "*"


def _joined(bus: BusUse, role: str, identity: Identity) -> tuple[list[str], list[str]]:
    """
    An access point that has joined has its own shard, queue, reports and ads, all of them by its name: it can neither read
    nor write anything of another.  One that joined before there was an account for them is no guest until it joins again.
    """
    subjects, name = bus.subjects, identity.access_point
    shard = f"schedd.{name}"
    frames = bus.reads(subjects.event_stream(shard), subjects.events(shard))
    publish = [*_asks_by_name(role, subjects, identity), *bus.answers, subjects.notice(role, name)]
    if bus.guest:  # who asks within the account waits at a place of his own
        publish += [f"{daemon(each, name).inbox}.>" for each in JOINED.values()]
    publish.append(_reads_of_people(bus))
    subscribe = [*_inbox(identity), _notices(subjects, "*"), "$SRV.*", *_found_as(role)]
    subscribe.append(subjects.commands_of(role, name))
    match role:
        case "schedd":
            publish += [
                *bus.makes(f"KV_{subjects.ads}"),
                f"$KV.{subjects.ads}.{ad_key('Scheduler', name)}",
                f"$KV.{subjects.ads}.{_every_slot(submitters_key(name, 'x'))}",
                *_owns_shards(bus, role, {role: [shard]}),
                *bus.asks_for(subjects.event_stream(shard)),
            ]
            subscribe += [subjects.commands_of(READ_FRAMES.role, shard), *_found_as(READ_FRAMES.role)]
        case "shadow":
            work = subjects.work_stream
            publish += [
                *frames,
                *bus.makes(work),
                *bus.asks_for(work),
                *bus.reads(work, subjects.work_of(name), subjects.work_reader(name)),
                *bus.makes(subjects.object_stream),
                *bus.asks_for(subjects.object_stream),
                subjects.objects_all,
            ]
        case _:
            publish += [
                *bus.makes(f"KV_{subjects.ads}"),
                f"$KV.{subjects.ads}.{ad_key('DaemonMaster', name)}",
            ]
    return publish, subscribe


def _asks_by_name(role: str, subjects: Subjects, identity: Identity) -> list[str]:
    """
    The commands of an access point that has joined: to its own queue and shadow and no others, who look at the caller's role. Iam
    gives its jobs no tokens: it vouches for its people to its own queue alone.
    """
    own = {
        "schedd": identity.access_point,
        "shadow": identity.access_point,
        READ_FRAMES.role: f"schedd.{identity.access_point}",
    }
    return [
        subjects.command(endpoint.role, own[endpoint.role], endpoint.verb, identity.token)
        if endpoint.role in own
        else subjects.commands_by(identity.token, endpoint.role, endpoint.verb)
        for endpoint in open_to(Caller(role))
        if endpoint not in {ISSUE_JOB_TOKENS, END_JOB_TOKENS}
    ]


def people_of(access_point: str, subjects: Subjects, identity: Identity) -> tuple[list[str], list[str]]:
    """
    A person whom an access point that has joined vouches for, who has nothing of the queues of others: who runs the
    machine can make such statements for every name. The machines themselves have the schedd's word for who looks into a job.
    """
    publish = [
        subjects.command(endpoint.role, access_point, endpoint.verb, identity.token)
        for endpoint in open_to(Caller.USER)
        if endpoint.role in {"schedd", "shadow"}
    ]
    publish += [subjects.commands_by(identity.token, each.role, each.verb) for each in OF_THE_POOL]
    publish += [  # that machine's own master, which knows its administrators
        subjects.command(endpoint.role, access_point, endpoint.verb, identity.token)
        for endpoint in open_to(Caller.ADMINISTRATOR)
        if endpoint.role == "master"
    ]
    bus = BusUse(subjects, guest=True)
    own = bus.reads(subjects.monitor_stream, subjects.monitor(identity.name))
    inbox = f"{identity.inbox_at(access_point)}.>"
    return [*publish, *own], [inbox, subjects.events_all, subjects.tail_of(identity.name)]


def _found_as(role: str) -> list[str]:
    """Where programs ask which services there are."""
    return [f"$SRV.*.{role}", f"$SRV.*.{role}.*"]


def _writes_ads(bus: BusUse, role: str) -> list[str]:
    subjects, private = bus.subjects, bus.subjects.private_ads
    granted = bus.makes(f"KV_{subjects.ads}")
    granted += [f"$KV.{subjects.ads}.{ad_type}.>" for ad_type in _ADS.get(role, ())]
    if role in {"negotiator", "collector"}:
        granted += bus.makes(f"KV_{private}")
    if role == "negotiator":
        granted += bus.reads(f"KV_{private}", f"$KV.{private}.>")
    return granted


def _owns_shards(bus: BusUse, role: str, shards: Mapping[str, Sequence[str]]) -> list[str]:
    """
    The frames of its shards, and the leases by which their owners are chosen, are each its owners' alone.
    """
    subjects, leases = bus.subjects, bus.subjects.leases
    granted: list[str] = []
    for shard in shards.get(role, ()):
        entry = f"$KV.{leases}.{token(shard)}"
        granted += [
            subjects.events(shard),
            *bus.makes(subjects.event_stream(shard)),
            entry,
            *bus.reads(f"KV_{leases}", entry),
        ]
    return [*granted, *bus.makes(f"KV_{leases}")] if granted else []


def _keeps_work(bus: BusUse, role: str) -> list[str]:
    """Reports of workers, and files that many of them want."""
    if role != "shadow":
        return []
    subjects = bus.subjects
    work, objects = subjects.work_stream, subjects.object_stream
    return [*bus.makes(work), *bus.reads(work, subjects.work_all), *bus.makes(objects), subjects.objects_all]


def _knows_people(bus: BusUse, role: str) -> list[str]:
    """What iam says of people, whom any service may have to do with."""
    people = bus.subjects.people
    entries = f"$KV.{people}.>"
    reads = [*bus.reads(f"KV_{people}", entries), _reads_of_people(bus)]
    return [*bus.makes(f"KV_{people}"), *reads, *([entries] if role == "iam" else [])]


def _reads_of_people(bus: BusUse) -> str:
    """What iam has said of one person: an access point that has joined makes no consumer for it."""
    people = bus.subjects.people
    return f"{bus.api}.DIRECT.GET.KV_{people}.$KV.{people}.>"


def _publishes_events(bus: BusUse, role: str) -> list[str]:
    if role != "gateway":
        return []
    stream = bus.subjects.monitor_stream
    return [
        *bus.makes(stream),
        *bus.reads(stream, ">"),
        f"{bus.api}.STREAM.MSG.GET.{stream}",
        f"{bus.api}.STREAM.LIST",
        bus.subjects.tail_all,
    ]


def _reports_of_batch_systems(bus: BusUse, role: str, shards: Mapping[str, Sequence[str]]) -> list[str]:
    """
    To the jobs of its schedd an entrypoint is the machine of its batch systems, under the name of its shard.
    """
    if role != CE:
        return []
    subjects = bus.subjects
    return [
        *bus.makes(subjects.work_stream),
        *(subjects.work_by(name) for name in shards.get(role, ())),
        *(subjects.notice(STARTD, name) for name in shards.get(role, ())),
        f"{bus.api}.DIRECT.GET.{subjects.object_stream}.{subjects.objects_all}",
    ]


def _makes_readers(bus: BusUse, role: str, shards: Mapping[str, Sequence[str]]) -> list[str]:
    """For members of other accounts; and streams of events for access points that have joined."""
    if role != "collector":
        return []
    subjects = bus.subjects
    leases, create = f"KV_{subjects.leases}", f"{bus.api}.CONSUMER.CREATE"
    made = [
        f"{create}.{stream}.{rest}"
        for stream in (subjects.work_stream, subjects.monitor_stream)
        for rest in ("*.>", "*")
    ]
    joined = shards.get(JOINED_SHARDS, ())
    if joined:
        made += [f"{bus.api}.STREAM.CREATE.{each}" for each in (subjects.work_stream, subjects.object_stream)]
    for shard in joined:
        made += [
            f"{create}.{subjects.event_stream(shard)}.*.{subjects.events(shard)}",
            f"{create}.{leases}.*.$KV.{subjects.leases}.{token(shard)}",
            f"{bus.api}.STREAM.CREATE.{subjects.event_stream(shard)}",
        ]
    return made


def _knows_owners(bus: BusUse, role: str) -> list[str]:
    """Of machines that take the jobs of one person only."""
    owners = bus.subjects.machine_owners
    match role:
        case "iam":
            return [
                *bus.makes(f"KV_{owners}"),
                *bus.reads(f"KV_{owners}", f"$KV.{owners}.>"),
                f"$KV.{owners}.*",
            ]
        case "negotiator" | "scaler":
            return [*bus.makes(f"KV_{owners}"), *bus.reads(f"KV_{owners}", f"$KV.{owners}.>")]
        case _:
            return []


def _notices(subjects: Subjects, kind: str) -> str:
    return subjects.notice(kind, "x").removesuffix("x") + "*"
