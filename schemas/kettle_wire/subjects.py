"""
Every subject, stream, bucket and durable name on the bus, as functions.

A token from outside (a host, an owner, a slot) is encoded so that any name is safe, in subjects and in the keys of buckets:
characters that NATS gives a meaning to, and `=` itself, become `=XX`. Job ids are never part of a stored subject:
the number of subjects in a stream must not grow with the number of jobs.
"""

from functools import lru_cache
from typing import Final

_MACHINE: Final = "Machine"
_SAFE: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")

PRIVATE_SHARDS: Final = frozenset({"identity"})
"""Shards whose frames people cannot follow: who was banned, and from which address somebody came, is not everybody's business."""


@lru_cache(maxsize=4096)
def token(name: str) -> str:
    """Encode any text as one token of a subject or a key; an empty name becomes `=`."""
    if name and _SAFE.issuperset(name):
        return name
    return "".join(c if c in _SAFE else "".join(f"={b:02X}" for b in c.encode()) for c in name) or "="


def untoken(text: str) -> str:
    """Inverse of `token`; raises ValueError for what is no token."""
    head, *rest = text.split("=")
    encoded = head.encode() + b"".join(
        bytes([int(part[:2], 16)]) + part[2:].encode() for part in rest if part
    )
    return encoded.decode()


API: Final = "$JS.API"
"""How the subjects of JetStream's interface begin."""

GUESTS_API: Final = "kettle.js"
"""What guests call the interface of the pool's JetStream: under its own name the server answers that they have none."""


class Subjects:
    """The names of one pool: `kettle.<pool>.…` for subjects, `KETTLE_<pool>_…` for streams and buckets."""

    def __init__(self, pool: str) -> None:
        self.pool = pool
        self._prefix = f"kettle.{token(pool)}"
        self._asset = f"KETTLE_{token(pool)}".replace("=", "_")

    def command(self, role: str, name: str, verb: str, caller: str) -> str:
        """
        Request/reply with one service; `role` and `verb` are ours, `name` is anybody's.

        The last token is the caller's identity (see `kettle_wire.identity`): the server lets a client publish
        only under its own, so a service learns the caller from the subject, never from the payload.
        """
        return f"{self._prefix}.cmd.{role}.{token(name)}.{verb}.{caller}"

    def commands_by(self, caller: str, role: str = "*", verb: str = "*") -> str:
        """Filter: what one caller may ask of any service of `role`."""
        return f"{self._prefix}.cmd.{role}.*.{verb}.{caller}"

    def commands_to(self, role: str) -> str:
        """Filter: everything that services of `role` answer."""
        return f"{self._prefix}.cmd.{role}.>"

    def commands_at(self, role: str) -> str:
        """Filter: the same, of commands and nothing longer, as accounts share it."""
        return f"{self._prefix}.cmd.{role}.*.*.*"

    def commands_of(self, role: str, name: str) -> str:
        """Filter: everything that one service answers."""
        return f"{self._prefix}.cmd.{role}.{token(name)}.*.*"

    def events(self, shard: str) -> str:
        """The frames of one shard of the log."""
        return f"{self._prefix}.{'private' if shard in PRIVATE_SHARDS else 'evt'}.{token(shard)}"

    def readers(self, stream: str) -> str:
        """
        Where a collector is asked for consumers of a stream by members of other accounts, who call it as JetStream's interface:
        behind it stand the name and the filter.
        """
        return f"{self._prefix}.readers.{stream}"

    def stream_requests(self, stream: str) -> str:
        """
        Where a collector is asked for a stream by an access point that has joined, which calls it as JetStream's interface.
        """
        return f"{self._prefix}.streams.{stream}"

    @property
    def events_all(self) -> str:
        """Filter: the frames of every shard that people may follow."""
        return f"{self._prefix}.evt.*"

    def event_stream(self, shard: str) -> str:
        """The JetStream stream that holds `events(shard)`; its sequence is the frame number."""
        return f"{self._asset}_EVT_{token(shard).replace('=', '_')}"

    def shard_of(self, subject: str) -> str:
        """The shard whose frames are on a subject that `events` made."""
        return untoken(subject.rpartition(".")[2])

    def tail(self, owner: str, cluster: int, proc: int | None, event: str) -> str:
        """
        Live: one event `noun.verb` of a person's job, or of a whole cluster (no `proc`).

        A stream stores it without the ids, as `monitor(owner, event)`.
        """
        return f"{self._prefix}.tail.{token(owner)}.{cluster}.{'-' if proc is None else proc}.{event}"

    def tail_of(self, owner: str) -> str:
        """Filter: the events of one person's jobs, live."""
        return f"{self._prefix}.tail.{token(owner)}.*.*.*.*"

    def tail_pool(self, event: str) -> str:
        """
        One event `noun.verb` that is no job's: of a machine, a claim, a negotiation; live and stored alike.
        """
        return f"{self._prefix}.tail.pool.{event}"

    @property
    def tail_all(self) -> str:
        """Filter: single events of everything, live."""
        return f"{self._prefix}.tail.>"

    def monitor(self, owner: str | None, event: str = "*.*") -> str:
        """Filter: how the events of a person's jobs are stored; None: of everybody's."""
        return f"{self._prefix}.monitor.{'*' if owner is None else token(owner)}.{event}"

    @property
    def monitor_stream(self) -> str:
        """The bounded JetStream stream that holds single events."""
        return f"{self._asset}_MONITOR"

    @property
    def monitor_transform(self) -> tuple[str, str]:
        """
        What the stream makes of a live subject before it stores it: no job ids, so that subjects do not pile up.
        """
        stored = "{{wildcard(1)}}.{{wildcard(4)}}.{{wildcard(5)}}"
        return f"{self._prefix}.tail.*.*.*.*.*", f"{self._prefix}.monitor.{stored}"

    def work(self, schedd: str, startd: str) -> str:
        """Reports of the workers on one machine about the jobs of one schedd."""
        return f"{self._prefix}.work.{token(schedd)}.{token(startd)}"

    def work_of(self, schedd: str) -> str:
        """Filter: the reports of all machines to one schedd."""
        return f"{self._prefix}.work.{token(schedd)}.*"

    def work_by(self, startd: str) -> str:
        """Filter: the reports of one machine to all schedds."""
        return f"{self._prefix}.work.*.{token(startd)}"

    def reporter(self, subject: str) -> str:
        """The machine whose reports are on a subject that `work` made; only its startd may publish there."""
        return untoken(subject.rpartition(".")[2])

    def work_reader(self, schedd: str) -> str:
        """The durable consumer with which the shadows of a schedd read `work_of(schedd)`."""
        return f"shadow-{token(schedd)}"

    @property
    def work_all(self) -> str:
        """Filter: every worker report of the pool."""
        return f"{self._prefix}.work.>"

    @property
    def work_stream(self) -> str:
        """The JetStream stream that holds the worker reports."""
        return f"{self._asset}_WORK"

    def object_piece(self, sha256: str, number: int) -> str:
        """A piece of an object, which is named by the SHA-256 of all its bytes."""
        return f"{self._prefix}.obj.{token(sha256)}.{number}"

    @property
    def objects_all(self) -> str:
        """Filter: every piece of every object."""
        return f"{self._prefix}.obj.*.*"

    @property
    def object_stream(self) -> str:
        """The bounded JetStream stream that holds the pieces of objects: files that many machines want."""
        return f"{self._asset}_OBJECTS"

    @property
    def ads(self) -> str:
        """Key-value bucket of public ads, by `ad_key`, `machine_key` and the like."""
        return f"{self._asset}_ADS"

    @property
    def private_ads(self) -> str:
        """Key-value bucket of claim capabilities, by `slot_key`; for startds and negotiators alone."""
        return f"{self._asset}_PRIVATE"

    @property
    def people(self) -> str:
        """
        Key-value bucket of what iam says of people who came with a token, by `kettle_wire.people.person_key`.
        """
        return f"{self._asset}_PEOPLE"

    @property
    def machine_owners(self) -> str:
        """
        Key-value bucket, written by iam alone: whose jobs alone a machine takes, by `token` of its name
        (`kettle_wire.machine_owners`).
        """
        return f"{self._asset}_OWNERS"

    @property
    def leases(self) -> str:
        """Key-value bucket in which would-be owners of a shard contend."""
        return f"{self._asset}_LEASES"

    def notice(self, kind: str, name: str) -> str:
        """Core, unstored: 'something changed, look' (for example a schedd that has just started)."""
        return f"{self._prefix}.notice.{kind}.{token(name)}"

    def noticed(self, subject: str) -> str:
        """Whom a notice is about; nobody else may send it."""
        return untoken(subject.rpartition(".")[2])

    def notices(self, kind: str) -> str:
        """Filter: the notices of one kind, about any sender."""
        return f"{self._prefix}.notice.{kind}.*"


OFFLINE: Final = "Offline"
"""
Under this stand the slots of machines that sleep in the bucket of ads, so that only collectors see them; the scaler puts them there.
"""


SILENT: Final = "Silent"
"""
Under this stand the ads that a registry keeps of daemons of other pools which it does not hear of any more, each with the key that it had.
"""


def submitters_key(schedd: str, submitter: str) -> str:
    """
    The key of the ad of a submitter of a schedd that visits, or has joined: under its name, so that it can write no other.
    """
    return f"Submitter.{token(schedd)}.{token(submitter)}"


FORWARDED: Final = "Forwarded"
"""
With this the keys of ads begin that other pools forward: those who follow ads of a type do not see them.
"""


def forwarded_key(forwarder: str, own: str) -> str:
    """
    The key of an ad that another pool forwards, which stands under `own` there: under its name, it can write no other.
    """
    return f"{FORWARDED}.{token(forwarder)}.{own}"


def slot_key(startd: str, slot: str) -> str:
    """
    The key of a slot in the bucket of capabilities: below its startd's name, so that no startd can write another's.
    """
    return f"{token(startd)}.{token(slot)}"


def machine_key(startd: str, slot: str) -> str:
    """The key of a slot's ad in the bucket `Subjects.ads`, below its startd's name as well."""
    return f"{_MACHINE}.{slot_key(startd, slot)}"


def ad_key(ad_type: str, name: str) -> str:
    """The key of an ad in the bucket `Subjects.ads`."""
    return f"{ad_type}.{token(name)}"


def impostor(key: str, name: object) -> str:
    """
    Why an ad that a startd put under a key says that it is of another; empty: it does not, or is no startd's.

    The server lets a startd write below its own name, whatever the ad itself says.
    """
    kind, _, own = key.partition(".")
    if kind == _MACHINE and "." in own:  # no startd may write elsewhere
        startd, _, slot = own.partition(".")
        right = name == untoken(slot) and untoken(slot).endswith(f"@{untoken(startd)}")
    else:
        right = kind not in {"StartDaemon", "DaemonMaster"} or name == untoken(own)
    return "" if right else f"it came from {own} and names itself {name}"
