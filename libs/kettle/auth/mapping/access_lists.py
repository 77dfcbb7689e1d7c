"""
Who has which level: allow and deny lists as HTCondor has them, and the decision that follows from them.

An entry is `user@domain`, `user@domain/host`, or a host: a name or an address, with `*`, or a network such as `10.0.0.0/8`.
Each level has its own lists, for all services or for one. Who is on the deny list does not have the level; who is on
the allow list has it; anybody else has it who has a level that implies it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.auth.mapping.findings import Because, Finding, Place
from kettle.auth.mapping.levels import Level
from kettle.auth.mapping.principals import Address

if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network

SUBSYSTEMS: Final = frozenset({
    "ACCOUNTING", "COLLECTOR", "GATEWAY", "IAM", "MASTER", "NEGOTIATOR", "SCHEDD", "SHADOW", "STARTD",
})  # fmt: skip


_OF_PEOPLE: Final = frozenset({Level.READ, Level.WRITE, Level.ADMINISTRATOR})
"""What people need for commands on the bus."""


class Entry(msgspec.Struct, frozen=True, dict=True):
    """An entry of a list: a user and a host, each of which may have `*` in it."""

    text: str
    user: str
    host: str
    place: Place

    @classmethod
    def read(cls, text: str, place: Place) -> "Entry":
        """The entry that a text is, by HTCondor's rules for where its user ends and its host begins."""
        before, slash, after = text.partition("/")
        if not slash:
            return cls(text, text, "*", place) if "@" in text else cls(text, "*", text, place)
        of_network = "/" not in after and "@" not in before and not before.startswith("*")
        if of_network and _network(text) is not None:
            return cls(text, "*", text, place)
        return cls(text, before, after, place)

    @cached_property
    def network(self) -> "IPv4Network | IPv6Network | None":
        """The addresses that the host is, if it is a network or an address."""
        return _network(self.host)

    def is_user(self, user: str, *, exactly: bool) -> bool:
        """
        Whether it is about a user; a domain never has a case of its own, a user has where one is let in.
        """
        if not exactly:
            return glob(self.user.lower(), user.lower())
        pattern, at, domain = self.user.partition("@")
        name, _, own = user.partition("@")
        return glob(f"{pattern}{at}{domain.lower()}", f"{name}@{own.lower()}")

    def is_host(self, address: Address) -> bool:
        """Whether it is about somebody there."""
        if self.host == "*":
            return True
        if self.network is not None:
            return bool(address.ip) and _contains(self.network, address.ip)
        pattern = self.host.lower()
        return any(glob(pattern, each.lower()) for each in (address.ip, *address.names) if each)


class AccessDecision(msgspec.Struct, frozen=True):
    """Whether somebody has a level."""

    allowed: bool
    because: Because | None = None
    """The first rule that decided; None if there was none."""
    by: Level | None = None
    """The level that was given, which implies the one that was asked for."""
    consulted: Place | None = None
    """The list in which an entry is missing; None: there is no list."""


class AccessLists:
    """The lists of a pool."""

    def __init__(
        self,
        allow: Mapping[str, Sequence[Entry]],
        deny: Mapping[str, Sequence[Entry]],
        *,
        places: Mapping[str, Place] | None = None,
        open_levels: Collection[Level] = (),
    ) -> None:
        """
        `allow` and `deny` by LEVEL or LEVEL_SUBSYSTEM; `places` of the allow lists.

        `open_levels` are everybody's as long as they have no allow list; without one any other level is nobody's.
        """
        self._allow = dict(allow)
        self._deny = dict(deny)
        self._places = dict(places or {})
        self._open = frozenset(open_levels)

    def decide(
        self,
        user: str,
        level: Level,
        address: Address,
        *,
        subsystem: str = "",
        granted: Mapping[Level, Because] | None = None,
    ) -> AccessDecision:
        """
        Whether a user has a level at a service; `granted` are levels that the rule has given by which he has his name.
        """
        if (denied := self._denied(user, level, address, subsystem)) is not None:
            return AccessDecision(allowed=False, because=denied)
        if granted and level in granted:
            return AccessDecision(allowed=True, because=granted[level])
        consulted: Place | None = None
        found = self._list(self._allow, level, subsystem)
        if found is None and level in self._open:
            return AccessDecision(allowed=True)
        if found is not None:
            key, entries = found
            consulted = self._places.get(key) or (entries[0].place if entries else None)
            for entry in entries:
                if entry.is_user(user, exactly=True) and entry.is_host(address):
                    return AccessDecision(allowed=True, because=_because("allow", key, entry))
        for above in level.implied_by():
            higher = self.decide(user, above, address, subsystem=subsystem, granted=granted)
            if higher.allowed:
                return msgspec.structs.replace(higher, by=higher.by or above)
        return AccessDecision(allowed=False, consulted=consulted)

    def _denied(self, user: str, level: Level, address: Address, subsystem: str) -> Because | None:
        found = self._list(self._deny, level, subsystem)
        if found is None:
            return None
        key, entries = found
        for entry in entries:
            # where it is not known from where somebody asks it may be from there
            if entry.is_user(user, exactly=False) and (entry.is_host(address) or not address.is_known):
                return _because("deny", key, entry)
        return None

    @staticmethod
    def _list(
        lists: Mapping[str, Sequence[Entry]], level: Level, subsystem: str
    ) -> tuple[str, Sequence[Entry]] | None:
        """The list that counts for a level at a service: its own, then that of all services."""
        for each in level.lists():
            for key in (f"{each}_{subsystem.upper()}", each.value) if subsystem else (each.value,):
                if key in lists:
                    return key, lists[key]
        return None


def missing_entry(name: str, level: Level, found: AccessDecision) -> str:
    """What keeps somebody from having a level, by the lists."""
    if found.because is not None:
        return f"denied by {found.because}"
    list_ = f"allow.{level} of [authorization] ({found.consulted})" if found.consulted else ""
    lacks = f"{list_} has no entry for {name}" if list_ else f"[authorization] has no allow.{level}"
    return f"{lacks}, and {name} has no level that implies it"


def _because(kind: str, key: str, entry: Entry) -> Because:
    return Because(entry.place, f"{kind} {key} = {entry.text}")


def key_problem(key: str) -> str:
    """What is wrong with the name of a list, as the end of a sentence; empty if nothing is."""
    if key in _LEVELS:
        return ""
    for level in _LEVELS:
        if key.startswith(f"{level}_") and key.removeprefix(f"{level}_") in SUBSYSTEMS:
            return ""
    import difflib

    known = [*_LEVELS, *(f"{level}_{each}" for level in _LEVELS for each in sorted(SUBSYSTEMS))]
    near = difflib.get_close_matches(key.upper(), known, n=1)
    return f"'{key}' is no level, and no level with a service behind it{f'; did you mean {near[0]}?' if near else ''}"


_LEVELS: Final = tuple(level.value for level in Level)


def entry_problem(text: str) -> str:
    """What is wrong with an entry, as the end of a sentence; empty if nothing is."""
    if not text or any(each.isspace() or not each.isprintable() for each in text):
        return f"{text!r} is no entry: write user@domain, user@domain/host or a host, without blanks"
    entry = Entry.read(text, Place(""))
    if not entry.user or not entry.host:
        return f"'{text}' has nothing on one side of its /"
    return ""


def suspicions(kind: str, key: str, entry: Entry) -> Iterator[Finding]:
    """What in an entry is seldom meant."""
    if (
        kind == "allow"
        and key.partition("_")[0] != Level.READ
        and entry.user in {"*", "*@*"}
        and entry.host == "*"
    ):
        yield Finding(entry.place, f"'{entry.text}' in allow.{key} lets everybody in", warning=True)
    if kind == "deny" and entry.host != "*" and key.partition("_")[0] in _OF_PEOPLE:
        yield Finding(
            entry.place,
            f"'{entry.text}' in deny.{key} shuts out {entry.user} from anywhere on the bus, where addresses are not known",
            warning=True,
        )
    bare = entry.user == "*" and entry.host == entry.text and entry.network is None
    if bare and entry.host != "*" and not set(entry.host) & set(".*:"):
        yield Finding(
            entry.place, f"'{entry.text}' is the host {entry.text}; a user is '{entry.text}@*'", warning=True
        )


def glob(pattern: str, text: str) -> bool:
    """
    Whether a text is what a pattern says, in which `*` stands for anything; in linear time for each `*`.
    """
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == text
    if not text.startswith(first):
        return False
    at = len(first)
    *middle, last = rest
    for part in middle:
        at = text.find(part, at)
        if at == -1:
            return False
        at += len(part)
    return len(text) - len(last) >= at and text.endswith(last)


def _network(text: str) -> "IPv4Network | IPv6Network | None":
    """The network that a text is: `10.0.0.0/8`, `10.0.0.0/255.0.0.0`, or one address."""
    if not text[:1].isalnum() and text[:1] != ":":
        return None
    import ipaddress

    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _contains(network: "IPv4Network | IPv6Network", ip: str) -> bool:
    import ipaddress

    try:
        address = ipaddress.ip_address(ip)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address) in network
