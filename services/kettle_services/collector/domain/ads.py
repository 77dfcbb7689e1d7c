"""The ads of the pool: one table for each type, in which each value is kept once."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from kettle.classad.columnar import Table
from kettle_services.collector.domain.update_statistics import ADDED, Updates
from kettle_wire.ads.daemon import SubmitterAd
from kettle_wire.ads.types import Ad, Scalar
from kettle_wire.flocking import domain_of, stranger
from kettle_wire.subjects import FORWARDED, OFFLINE, SILENT, impostor, untoken

SUBMITTER: Final = "Submitter"
SLOT: Final = "Machine"
ABSENT: Final = "Absent"
"""
Under this stand the slots of absent machines in the bucket, so that only collectors see them: they can run nothing.
"""
CLOCK: Final = "MyCurrentTime"
SOURCE: Final = "ForwardedFrom"
"""What an ad has that another pool forwards: which one, by the credential that put it there."""

_PRIVATE: Final = frozenset(
    {"claimid", "claimids", "claimidlist", "childclaimids", "capability", "transferkey"}
)
_PRIVATE_PREFIX: Final = "_condor_priv"

_LATE: Final = 1.5
"""Times its lifetime after which an ad is dropped even if the bus does not say so."""

_SHORTEST_S: Final = 1.0
"""No ad lives shorter, whatever it says: it would come and go with each update."""
_SOURCE: Final = frozenset({SOURCE.lower()})
_OURS: Final = ADDED | _SOURCE
_decode_ad: Final = msgspec.msgpack.Decoder(Ad).decode
_decode_submitter: Final = msgspec.msgpack.Decoder(SubmitterAd).decode

Place = tuple[str, str]
"""Name and key of an ad: by these they are in order."""


class NotAnAdError(ValueError):
    """What stands under a key of the bucket is no ad."""


class Heard(msgspec.Struct, frozen=True):
    """When an ad was last received, in seconds since 1970, and its lifetime in seconds."""

    name: str
    at: float
    lifetime: float


class Shelf:
    """The ads of one type."""

    def __init__(self) -> None:
        self.table = Table()
        self.heard: dict[str, Heard] = {}
        self._order: list[Place] | None = None

    def put(self, key: str, ad: Ad, heard: Heard) -> None:
        """Store an ad, a new one or in place of another."""
        before = self.heard.get(key)
        if before is None or before.name != heard.name:
            self._misplace(key, before)
            if self._order is not None:
                insort(self._order, (heard.name, key))
        self.heard[key] = heard
        self.table.put(key, ad)

    def drop(self, key: str) -> Heard | None:
        """An ad went; what was known of it."""
        heard = self.heard.pop(key, None)
        if heard is not None:
            self._misplace(key, heard)
            self.table.remove(key)
        return heard

    def _misplace(self, key: str, heard: Heard | None) -> None:
        if self._order is not None and heard is not None:
            del self._order[bisect_left(self._order, (heard.name, key))]

    def after(self, place: Place | None) -> Sequence[Place]:
        """The ads behind a place, or all, by name; from the first question on they are kept in order."""
        if self._order is None:
            self._order = sorted((heard.name, key) for key, heard in self.heard.items())
        return self._order if place is None else self._order[bisect_right(self._order, place) :]


class Adverts:
    """
    All ads by type and key.

    `lifetime`: seconds after which the bus ends an ad; an ad may say that it lives shorter.
    `own_names`: types, in lower case, of which other pools may forward only ads of their own name.
    """

    def __init__(self, lifetime: float, own_names: Collection[str] = ()) -> None:
        self._lifetime = lifetime
        self._own_names = own_names
        self._shelves: dict[tuple[bool, str], Shelf] = {}
        """By whether another pool forwards the ads, and their type in lower case."""
        self._updates = Updates()

    def put(self, key: str, value: bytes, now: float) -> Mapping[str, Scalar]:
        """
        Store an entry of the bucket; its attributes are by lower-case name.

        Raises NotAnAdError if it is not an ad; the last one then stays.
        """
        kind, forwarded = type_of(key), is_forwarded(key)
        try:
            source = source_of(key) if forwarded else ""
            ad = _submitter(key, value) if kind == SUBMITTER and not forwarded else _decode_ad(value)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise NotAnAdError(str(error)) from error
        folded = {name.lower(): value for name, value in ad.items()}
        if strange := impostor(key, folded.get("name")):
            raise NotAnAdError(strange)
        if forwarded and kind.lower() in self._own_names and not _is_named(folded.get("name"), source):
            raise NotAnAdError(
                f"a {kind} is registered here under the name of its credential, {source} or SOMETHING@{source}, and this one says that it is "
                f"{folded.get('name')}"
            )
        # A slot that is absent or asleep is a picture that was made of it; what is forwarded was counted where it comes from.
        counted = not forwarded and not is_picture(key)
        ours = _OURS if counted else _SOURCE
        if len(folded) < len(ad) or any(map(_is_private, folded)) or not ours.isdisjoint(folded):
            spelled = {name.lower(): name for name in ad}
            ad = {
                spelled[name]: value
                for name, value in folded.items()
                if not _is_private(name) and name not in ours
            }
        if forwarded:
            ad[SOURCE] = source
        if counted:
            ad |= self._updates.heard(key, folded, now)
        if "mytype" not in folded:
            ad["MyType"] = kind
        if "lastheardfrom" not in folded:
            ad["LastHeardFrom"] = int(now)
        name, lifetime = folded.get("name"), folded.get("classadlifetime")
        heard = Heard(
            name=name if isinstance(name, str) and name else key,
            at=now,
            lifetime=min(self._lifetime, max(_SHORTEST_S, lifetime))
            if isinstance(lifetime, int | float)
            else self._lifetime,
        )
        self._shelves.setdefault(_shelf_of(key), Shelf()).put(key, ad, heard)
        return folded

    def drop(self, key: str) -> Heard | None:
        """Take an entry out; returns what was known of it."""
        shelf = self._shelves.get(_shelf_of(key))
        return None if shelf is None else shelf.drop(key)

    def ad(self, key: str) -> Ad | None:
        """An ad as it came, without secrets."""
        shelf = self._shelves.get(_shelf_of(key))
        return None if shelf is None or key not in shelf.heard else shelf.table.wire(shelf.table.row(key))

    def known(self) -> list[str]:
        """The keys of all ads."""
        return [key for shelf in self._shelves.values() for key in shelf.heard]

    def forget(self, now: float) -> None:
        """Delete the counts of ads that were not received for days."""
        self._updates.sweep(now)

    def stale(self, now: float) -> list[str]:
        """Ads that the bus should have ended long ago: it lost them together with the news of their end."""
        return [
            key
            for shelf in self._shelves.values()
            for key, heard in shelf.heard.items()
            if now > heard.at + heard.lifetime * _LATE
        ]

    def counts(self) -> dict[str, int]:
        """How many ads of each type this pool has, by the type in lower case."""
        return {kind: len(shelf.heard) for (foreign, kind), shelf in self._shelves.items() if not foreign}

    def of_type(self, kind: str, *, forwarded: bool = False) -> list[Shelf]:
        """Where the ads of a type are; an empty one is every type. `forwarded`: those of other pools too."""
        return [
            shelf
            for (foreign, other), shelf in self._shelves.items()
            if (forwarded or not foreign) and (not kind or other == kind.lower())
        ]


def type_of(key: str) -> str:
    """The type of ad that stands under a key of the bucket, whichever pool it is of."""
    own = _heard_under(key).split(".", 2)[-1] if is_forwarded(key) else key
    kind = own.partition(".")[0]
    return SLOT if kind in {ABSENT, OFFLINE} else kind


def is_picture(key: str) -> bool:
    """Whether what stands under a key was not said by its machine or daemon, which is absent or asleep."""
    return key.startswith((f"{ABSENT}.", f"{OFFLINE}.", f"{SILENT}."))


def silent_key(key: str) -> str:
    """Where an ad stands that is kept although its daemon is not heard any more."""
    return f"{SILENT}.{key}"


def _heard_under(key: str) -> str:
    return key.removeprefix(f"{SILENT}.")


def is_forwarded(key: str) -> bool:
    """Whether another pool forwards the ad that stands under a key of the bucket."""
    return _heard_under(key).startswith(f"{FORWARDED}.")


def source_of(key: str) -> str:
    """Which pool forwards an ad; raises ValueError if the key does not say."""
    return domain_of(untoken(_heard_under(key).split(".", 2)[1]))


def _shelf_of(key: str) -> tuple[bool, str]:
    return is_forwarded(key), type_of(key).lower()


def _is_named(name: Scalar | None, source: str) -> bool:
    """
    Whether an ad has the name with which its sender has come, or one below it; names of hosts have no case.
    """
    if not isinstance(name, str):
        return False
    return name.lower() == source.lower() or name.lower().endswith(f"@{source.lower()}")


def _is_private(name: str) -> bool:
    return name in _PRIVATE or name.startswith(_PRIVATE_PREFIX)


def _submitter(key: str, value: bytes) -> Ad:
    demand = _decode_submitter(value)
    if strange := stranger(key, demand.name, demand.schedd):
        raise NotAnAdError(strange)
    return {
        "MyType": SUBMITTER,
        "Name": demand.name,
        "ScheddName": demand.schedd,
        "IdleJobs": demand.idle,
        "RunningJobs": demand.running,
        "HeldJobs": demand.held,
        "FlockedJobs": demand.flocked,
        **({"Machine": demand.machine} if demand.machine else {}),
        **({"SubmitterTag": demand.tag} if demand.tag else {}),
        **(
            {"DaemonStartTime": demand.started, "UpdateSequenceNumber": demand.sequence}
            if demand.sequence
            else {}
        ),
    }
