"""Which consumers a collector makes for members of other accounts, and how many of them for one person."""

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kettle_wire.subjects import Subjects, token

_NANOSECONDS: Final = 1_000_000_000
_TAKEN_OVER: Final = frozenset({
    "name", "durable_name", "description", "metadata",
    "deliver_policy", "opt_start_seq", "opt_start_time", "replay_policy", "headers_only",
    "ack_policy", "ack_wait", "max_deliver", "backoff", "max_ack_pending",
    "filter_subject", "filter_subjects",
    "max_waiting", "max_batch", "max_bytes", "inactive_threshold", "mem_storage",
})  # fmt: skip
"""The settings of consumers that are pulled from."""
_IGNORED: Final = frozenset({"max_expires", "num_replicas", "sample_freq", "flow_control"})
_LONGEST_PULL: Final = 60 * _NANOSECONDS
"""So long the server keeps the place for its answers, too: see `kettle.auth.trust.accounts`."""
_NAME: Final = re.compile(r"[A-Za-z0-9_=-]{1,256}")
_UNGUESSABLE: Final = 20
"""Characters of a name that nobody guesses: who knows the name of a consumer reads from it."""
_EPHEMERAL_S: Final = 60.0
_DURABLE_S: Final = 7 * 86_400.0
_LONGEST_S: Final = 30 * 86_400.0
_MOST: Final = 300
"""Consumers of one person at a time."""
_MOST_OF_ALL: Final = 1_000
"""Of those who read everything."""


class ReaderError(ValueError):
    """No such consumer is made; the message is a sentence."""

    code = 400


class TooManyReadersError(ReaderError):
    """Not now."""

    code = 429


class Reader(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer that may be made."""

    name: str
    owner: str
    """Whose events it reads, as a token; empty: everybody's."""
    config: Mapping[str, Any]
    idle: float
    """Seconds without use after which the server forgets it; 0: never."""


def accepted(subjects: Subjects, stream: str, name: str, of: str, asked: Mapping[str, Any]) -> Reader:
    """A consumer with the filter `of`, which is empty for everything; raises ReaderError."""
    config = {key: value for key, value in asked.items() if value not in (None, "", False)}
    for key in config.keys() - _TAKEN_OVER - _IGNORED:
        raise ReaderError(f"a consumer with {key} is not made here: make one that is pulled from")
    config = {"max_expires": _LONGEST_PULL} | {
        key: value for key, value in config.items() if key not in _IGNORED
    }
    if not _NAME.fullmatch(name) or any(config.get(key, name) != name for key in ("name", "durable_name")):
        raise ReaderError("the consumer's name has to be the one in the subject: letters, digits, -, _ and =")
    filters = config.get("filter_subjects") or [config.get("filter_subject", "")]
    if of and filters != [of]:
        raise ReaderError("the consumer's filter has to be the one in the subject")
    if stream == subjects.work_stream:
        return Reader(name=name, owner=of, config=config, idle=0.0)
    if own := _access_point(subjects, stream, of):
        return Reader(name=name, owner=own, config=config, idle=_idle(config, _EPHEMERAL_S))
    if stream != subjects.monitor_stream:
        raise ReaderError(f"{stream} is not read from outside of the pool")
    owner = _owner(subjects, of)
    if not owner and len(name) < _UNGUESSABLE:
        raise ReaderError(
            f"a consumer that reads the events of more than one person needs a name that nobody guesses, of {_UNGUESSABLE} characters "
            "at least: who knows it reads from it"
        )
    usual = _DURABLE_S if "durable_name" in config else _EPHEMERAL_S
    return Reader(name=name, owner=owner, config=config, idle=_idle(config, usual))


def _access_point(subjects: Subjects, stream: str, of: str) -> str:
    """
    Whose events or lease an access point that has joined asks for, as it stands in the filter; empty: it asks for others.
    """
    if not (shard := access_point_shard(subjects, of)):
        return ""
    own = {
        subjects.event_stream(shard): subjects.events(shard),
        f"KV_{subjects.leases}": f"$KV.{subjects.leases}.{token(shard)}",
    }
    return token(shard) if own.get(stream) == of else ""


def access_point_shard(subjects: Subjects, subject: str) -> str:
    """
    The shard of an access point that the last part of a subject names; empty: it names none.

    Who asks for a consumer chooses that part, so it may be nothing that `kettle_wire.subjects.token` makes.
    """
    if not subject.rpartition(".")[2].startswith(token("schedd.")):
        return ""
    try:
        return subjects.shard_of(subject)
    except ValueError:
        return ""


def _idle(config: Mapping[str, Any], usual: float) -> float:
    given = config.get("inactive_threshold", usual * _NANOSECONDS)
    if not isinstance(given, int | float) or not 0 < given <= _LONGEST_S * _NANOSECONDS:
        raise ReaderError("inactive_threshold has to be at most 30 days, in nanoseconds")
    return given / _NANOSECONDS


def _owner(subjects: Subjects, of: str) -> str:
    """Whose events a filter lets through; empty: those of more than one person."""
    parts, asked = subjects.monitor(None).split("."), of.split(".")
    place = len(parts) - 3
    if len(parts) != len(asked) or asked[:place] != parts[:place] or asked[place] in {"*", ">"}:
        return ""
    return asked[place]


class Kept:
    """How many consumers there may be of each person, as far as this collector has made them."""

    def __init__(self) -> None:
        self._until: defaultdict[str, dict[str, float]] = defaultdict(dict)

    def add(self, reader: Reader, *, now: float) -> None:
        """Count one; raises TooManyReadersError."""
        if not reader.idle:
            return
        owned = self._until[reader.owner]
        most = _MOST if reader.owner else _MOST_OF_ALL
        if len(owned) >= most:
            owned = self._until[reader.owner] = {name: until for name, until in owned.items() if until > now}
        if reader.name not in owned and len(owned) >= most:
            raise TooManyReadersError(
                f"there are {most} consumers already; end some, or wait until unused ones are forgotten"
            )
        owned[reader.name] = now + reader.idle
