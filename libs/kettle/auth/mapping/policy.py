"""
Who somebody is in the pool, and what that person may do: everything that a site has said about it, together.

`AccessPolicy.identify` makes a name of a verified credential, `AccessPolicy.decide` says whether its holder has a level.
Both say because of which line of which file.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

import msgspec

from kettle.auth.mapping.access_lists import AccessLists, missing_entry
from kettle.auth.mapping.bans import Ban
from kettle.auth.mapping.findings import Because, Place
from kettle.auth.mapping.levels import Level
from kettle.auth.mapping.map_file import MapFile
from kettle.auth.mapping.names import BANNED, NameRefused, filled, name_of
from kettle.auth.mapping.principals import Address, Principal, groups_of, in_group
from kettle.auth.mapping.rules import PlacedRule

Code = Literal["", "user.unmapped", "user.banned"]

_OWN_NAME: Final = frozenset({"FS", "FS_REMOTE", "IDTOKENS"})
"""Methods whose text is a name already: they need no line."""


class Mapped(msgspec.Struct, frozen=True, kw_only=True):
    """Who somebody is in the pool."""

    owner: str = ""
    domain: str = ""
    groups: tuple[str, ...] = ()
    levels: Mapping[Level, Because] = {}
    """What a rule gives, and which."""
    accounting_group: str = ""
    vo: str = ""
    """Of which virtual organisation; empty: of none."""
    rule: Because | None = None
    """The rule that gives it, or would have; None: none is about this credential."""
    because: tuple[Because, ...] = ()
    """What led to this, in the order in which it was looked at."""
    code: Code = ""
    """Why there is no name; empty: there is one."""
    why: str = ""
    """Why, as a sentence."""

    @property
    def name(self) -> str:
        """`owner@domain`; empty: nobody."""
        return f"{self.owner}@{self.domain}" if self.owner else ""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Whether somebody has a level, and because of what."""

    allowed: bool
    name: str
    level: Level
    because: Because | None = None
    """The first rule that decided."""
    missing: str = ""
    """What would have to be different, as a sentence without its beginning."""

    @property
    def sentence(self) -> str:
        """The decision, for a person."""
        who = self.name or "nobody whom the pool knows"
        if not self.allowed:
            return f"{who} has not the level {self.level}: {self.missing}"
        by = f" ({self.because})" if self.because else ""
        return f"{who} has the level {self.level}{by}"


class AccountingGroup(msgspec.Struct, frozen=True):
    """The accounting group of the members of a group."""

    group: str
    accounting_group: str
    place: Place


class AccessPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """All that a site says about who is who, and who may do what."""

    domain: str
    """What names get that bring no domain."""
    rules: tuple[PlacedRule, ...] = ()
    """They are asked before the map files."""
    maps: tuple[MapFile, ...] = ()
    accounting_groups: tuple[AccountingGroup, ...] = ()
    bans: tuple[Ban, ...] = ()
    lists: AccessLists = AccessLists({}, {})

    @property
    def gives_vos(self) -> bool:
        """Whether it says of anybody for which VO he comes."""
        return any(each.rule.vo for each in self.rules)

    def identify(self, principal: Principal, now: float) -> Mapped:
        """Who a principal is at a time, in seconds since the epoch."""
        rule, groups = next(self._applying(principal), (None, ()))
        reasons = (rule.because(groups),) if rule else ()
        try:
            owner, domain, led = self._named(principal, rule, groups)
        except NameRefused as error:
            return Mapped(code="user.unmapped", why=str(error), because=reasons)
        mapped = Mapped(
            owner=owner,
            domain=domain,
            groups=tuple(filled(each, groups) for each in rule.rule.groups)
            if rule and rule.rule.groups
            else principal.groups,
            levels=dict.fromkeys(rule.rule.levels, rule.because(groups)) if rule else {},
            vo=rule.rule.vo if rule else "",
            rule=rule.because(groups) if rule else None,
            because=(*reasons, *((led,) if led else ())),
        )
        if ban := self._ban(principal, mapped, now):
            reason = f": {ban.reason}" if ban.reason else ""
            said = Because(ban.place, str(ban))
            return Mapped(
                code="user.banned",
                why=f"this credential is banned{reason} ({said})",
                because=(*mapped.because, said),
            )
        if domain.lower() == BANNED:
            return Mapped(code="user.banned", why=f"{owner} is banned ({led})", because=mapped.because)
        if not owner:
            return Mapped(
                code="user.unmapped",
                why=f"no rule and no line of a map file is about this {principal.method} credential",
                because=mapped.because,
            )
        group, by = self._accounting_group(rule, groups, mapped.groups)
        return msgspec.structs.replace(
            mapped, accounting_group=group, because=(*mapped.because, *((by,) if by else ()))
        )

    def decide(
        self,
        principal: Principal,
        level: Level,
        address: Address | None = None,
        *,
        now: float,
        subsystem: str = "",
    ) -> Decision:
        """Whether a principal has a level at a service, asking from an address."""
        return self.decide_for(principal, self.identify(principal, now), level, address, subsystem=subsystem)

    def decide_for(
        self,
        principal: Principal,
        who: Mapped,
        level: Level,
        address: Address | None = None,
        *,
        subsystem: str = "",
    ) -> Decision:
        """`decide` for somebody who has been identified."""
        if who.code:
            because = who.because[-1] if who.because else None
            return Decision(allowed=False, name="", level=level, because=because, missing=who.why)
        if principal.limits is not None and level not in principal.limits:
            return Decision(allowed=False, name=who.name, level=level, missing=_limited(principal, level))
        found = self.lists.decide(
            who.name, level, address or principal.address, subsystem=subsystem, granted=who.levels
        )
        missing = "" if found.allowed else missing_entry(who.name, level, found)
        return Decision(
            allowed=found.allowed, name=who.name, level=level, because=found.because, missing=missing
        )

    def _applying(self, principal: Principal) -> Iterator[tuple[PlacedRule, tuple[str, ...]]]:
        for rule in self.rules:
            if (groups := rule.apply(principal)) is not None:
                yield rule, groups

    def _named(
        self, principal: Principal, rule: PlacedRule | None, groups: tuple[str, ...]
    ) -> tuple[str, str, Because | None]:
        """The name and domain, and the line that gave it if no rule did; raises NameRefused."""
        if rule is not None and rule.rule.owner:
            return (*name_of(rule.rule.owner, groups, self.domain), None)
        for each in self.maps:
            if (found := each.find(principal.method, principal.text)) is not None:
                line, matched = found
                return (*name_of(line.user, matched, self.domain), line.because(matched))
        if principal.method in _OWN_NAME:
            return (*name_of(principal.text, (), self.domain), None)
        return "", "", None

    def _ban(self, principal: Principal, mapped: Mapped, now: float) -> Ban | None:
        groups = (*groups_of(principal.claims), *principal.groups, *mapped.groups)
        return next(
            (ban for ban in self.bans if ban.holds(principal, mapped.owner, mapped.domain, groups, now)), None
        )

    def _accounting_group(
        self, rule: PlacedRule | None, matched: Sequence[str], groups: Sequence[str]
    ) -> tuple[str, Because | None]:
        if rule is not None and rule.rule.accounting_group:
            return filled(rule.rule.accounting_group, matched), None
        for each in self.accounting_groups:
            if in_group(groups, each.group):
                return each.accounting_group, Because(
                    each.place, f"accounting_groups {each.group} = {each.accounting_group}"
                )
        return "", None


def _limited(principal: Principal, level: Level) -> str:
    if principal.limits:
        only = ", ".join(sorted(principal.limits))
        return f"the credential is limited to {only} by its scopes; the scope condor:/{level} is missing"
    return f"the credential has no scope that permits anything here, such as condor:/{level}"
