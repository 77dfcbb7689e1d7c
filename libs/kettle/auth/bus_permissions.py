"""
What each role may do on the bus: the subjects on which it may publish and to which it may subscribe.

Each client publishes only under its own identity and subscribes only to its own inbox, so a command's subject names the
caller. A service also answers requests, which the server allows per request (`allow_responses`). JetStream's
interface is opened call by call, for the streams and buckets that the role needs.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kettle_wire.commands.catalogue import open_to
from kettle_wire.commands.log import READ_FRAMES
from kettle_wire.endpoint import Caller
from kettle_wire.identity import Identity
from kettle_wire.subjects import Subjects, forwarded_key, visitors_key

SHARDS: Final[Mapping[str, Sequence[str]]] = {
    "schedd": ("schedd.schedd",),
    "collector": ("collector",),
    "negotiator": ("negotiator",),
    "accounting": ("accounting",),
    "iam": ("identity",),
}
"""The shards that each role owns in a personal pool; a larger one names its own."""

_ADS: Final[Mapping[str, Sequence[str]]] = {
    "schedd": ("Scheduler", "Submitter"),
    "startd": ("Machine", "StartDaemon"),
    "collector": ("Collector", "Absent"),
    "negotiator": ("Negotiator",),
    "accounting": ("Accounting",),
    "master": ("DaemonMaster",),
}
_FOLLOWS_EVENTS_OF: Final[Mapping[str, Sequence[str]]] = {
    "shadow": ("schedd",),
    "accounting": ("schedd", "collector", "negotiator"),
    "audit": ("schedd", "collector", "negotiator", "iam"),
    "gateway": ("schedd", "collector", "negotiator", "accounting"),
}
_FOLLOWS_ADS: Final = ("collector", "negotiator")
_CALLERS: Final = frozenset(caller.value for caller in Caller)
_API: Final = "$JS.API"

ADMINISTRATOR: Final = Caller.ADMINISTRATOR.value
"""The role of a person who may also switch the daemons of every host."""

VISITOR: Final = Caller.VISITOR.value
"""The role of a schedd of another pool, with its shadow, that sends jobs here."""

FORWARDER: Final = "forwarder"
"""The role of a collector of another pool that forwards its ads here."""

MONITOR: Final = "monitor"
"""The role of a program outside of the pool that may read the published events of everybody."""


def permissions(
    role: str, subjects: Subjects, identity: Identity, *, shards: Mapping[str, Sequence[str]] = SHARDS
) -> tuple[list[str], list[str]]:
    """
    Where `identity` may publish, and to what it may subscribe; `role` is a service's, `user` for a person,
    `administrator` for one who runs the pool, `monitor`, `visitor` or `forwarder`.

    `shards`: the names of the shards that each role owns.
    """
    if role == VISITOR:
        return _visitors(subjects, identity)
    if role == FORWARDER:  # puts ads under its own name, and takes them away; it reads and asks nothing
        return [f"$KV.{subjects.ads}.{forwarded_key(identity.name, '>')}"], [f"_INBOX_{identity.token}.>"]
    publish = _asks(role, subjects, identity)
    subscribe = [f"_INBOX_{identity.token}.>"]
    if role == MONITOR:
        stream = subjects.monitor_stream
        # Clients that filter nothing leave the filter out of the request's subject.
        everything = [*_reads(stream, ">"), f"{_API}.CONSUMER.CREATE.{stream}.*"]
        return everything, [*subscribe, subjects.tail_all]
    if identity.kind == "user":
        # Everybody who may query the queue may follow it: frames are published live, but their stream is closed to
        # people.
        publish += _reads(subjects.monitor_stream, subjects.monitor(identity.name))
        return publish, [*subscribe, subjects.events_all, subjects.tail_of(identity.name)]
    publish += [
        *_writes_ads(role, subjects),
        *_owns_shards(role, subjects, shards),
        *_moves_work(role, subjects),
        *_moves_objects(role, subjects),
        *_publishes_events(role, subjects),
    ]
    for owner in _FOLLOWS_EVENTS_OF.get(role, ()):
        for shard in shards.get(owner, ()):
            publish += _reads(subjects.event_stream(shard), subjects.events(shard))
    if role in _FOLLOWS_ADS:
        publish += _reads(f"KV_{subjects.ads}", f"$KV.{subjects.ads}.>")
    publish.append(_notices(subjects, role))
    subscribe.append(_notices(subjects, "*"))
    subscribe.append("$SRV.*")
    for served in (role, READ_FRAMES.role) if shards.get(role) else (role,):
        subscribe += [subjects.commands_to(served), f"$SRV.*.{served}", f"$SRV.*.{served}.*"]
    return publish, subscribe


def _asks(role: str, subjects: Subjects, identity: Identity) -> list[str]:
    """The commands that declare this role among their callers; an administrator is a user, too."""
    if role not in _CALLERS:
        return []
    caller = Caller(role)
    callers = (caller, Caller.USER) if caller is Caller.ADMINISTRATOR else (caller,)
    return [
        subjects.commands_by(identity.token, endpoint.role, endpoint.verb) for endpoint in open_to(*callers)
    ]


def _visitors(subjects: Subjects, identity: Identity) -> tuple[list[str], list[str]]:
    """
    A visitor asks startds about its own claims, publishes the demand of its submitters, and receives its matches and
    reports.

    All of this is under its own name: it can neither read nor write anything of others.
    """
    stream, reader = subjects.work_stream, subjects.work_reader(identity.name)
    advertised = visitors_key(identity.name, "x").removesuffix("x")
    publish = [
        *_asks(VISITOR, subjects, identity),
        f"$KV.{subjects.ads}.{advertised}*",
        f"{_API}.STREAM.INFO.{stream}",
        f"{_API}.CONSUMER.CREATE.{stream}.{reader}.{subjects.work_of(identity.name)}",
        f"{_API}.CONSUMER.INFO.{stream}.{reader}",
        f"{_API}.CONSUMER.DELETE.{stream}.{reader}",
        f"{_API}.CONSUMER.MSG.NEXT.{stream}.{reader}",
        f"$JS.ACK.{stream}.{reader}.>",
    ]
    subscribe = [f"_INBOX_{identity.token}.>", "$SRV.*"]
    for role in ("schedd", "shadow"):
        subscribe += [subjects.commands_of(role, identity.name), f"$SRV.*.{role}", f"$SRV.*.{role}.*"]
    return publish, subscribe


def _writes_ads(role: str, subjects: Subjects) -> list[str]:
    granted = _makes(f"KV_{subjects.ads}")
    granted += [f"$KV.{subjects.ads}.{ad_type}.>" for ad_type in _ADS.get(role, ())]
    private = subjects.private_ads
    if role in {"startd", "negotiator", "collector"}:
        granted += _makes(f"KV_{private}")
    if role == "startd":
        granted.append(f"$KV.{private}.>")
    if role == "negotiator":
        granted += _reads(f"KV_{private}", f"$KV.{private}.>")
    return granted


def _owns_shards(role: str, subjects: Subjects, shards: Mapping[str, Sequence[str]]) -> list[str]:
    granted: list[str] = []
    for shard in shards.get(role, ()):
        granted += [subjects.events(shard), *_makes(subjects.event_stream(shard))]
    if granted:
        leases = subjects.leases
        granted += [*_makes(f"KV_{leases}"), f"$KV.{leases}.>", *_reads(f"KV_{leases}", f"$KV.{leases}.>")]
    return granted


def _moves_work(role: str, subjects: Subjects) -> list[str]:
    match role:
        case "startd":
            return [*_makes(subjects.work_stream), subjects.work_all]
        case "shadow":
            return [*_makes(subjects.work_stream), *_reads(subjects.work_stream, subjects.work_all)]
        case _:
            return []


def _moves_objects(role: str, subjects: Subjects) -> list[str]:
    stream = subjects.object_stream
    match role:
        case "startd":
            return [f"{_API}.DIRECT.GET.{stream}.{subjects.objects_all}"]
        case "shadow":
            return [*_makes(stream), subjects.objects_all]
        case _:
            return []


def _publishes_events(role: str, subjects: Subjects) -> list[str]:
    if role != "gateway":
        return []
    stream = subjects.monitor_stream
    return [
        *_makes(stream),
        f"{_API}.STREAM.MSG.GET.{stream}",
        f"{_API}.STREAM.LIST",
        subjects.tail_all,
    ]


def _makes(stream: str) -> list[str]:
    """Look at a stream, and make it if it is not there."""
    return [f"{_API}.STREAM.INFO.{stream}", f"{_API}.STREAM.CREATE.{stream}"]


def _reads(stream: str, subject: str) -> list[str]:
    """
    Read some subjects of a stream: the server compares them with the filter of the consumer that is made.
    """
    return [
        f"{_API}.STREAM.INFO.{stream}",
        f"{_API}.CONSUMER.CREATE.{stream}.*.{subject}",
        f"{_API}.CONSUMER.INFO.{stream}.*",
        f"{_API}.CONSUMER.DELETE.{stream}.*",
        f"{_API}.CONSUMER.MSG.NEXT.{stream}.*",
        f"$JS.ACK.{stream}.>",
    ]


def _notices(subjects: Subjects, kind: str) -> str:
    return subjects.notice(kind, "x").removesuffix("x") + "*"
