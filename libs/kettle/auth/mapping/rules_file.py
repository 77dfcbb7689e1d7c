"""
What a rules file says, from its tables: rules, accounting groups of groups, and bans, each with its line.
"""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, TypeVar, cast

import msgspec

from kettle.auth.mapping.bans import Ban
from kettle.auth.mapping.findings import Finding, Place
from kettle.auth.mapping.levels import Level
from kettle.auth.mapping.patterns import PatternError
from kettle.auth.mapping.policy import AccountingGroup
from kettle.auth.mapping.rules import PlacedRule, Rule, When, of_two_vos, shadowed

PlaceOf = Callable[[Sequence[str]], Place]
"""Where in the file keys lead; a number is the place in a list of tables."""

_LEVEL: Final = re.compile(r"Invalid enum value '([^']*)' - at `\$\.levels")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `([^`]*)`")

T = TypeVar("T", bound=msgspec.Struct)


class RulesFile(msgspec.Struct, frozen=True):
    """The contents of a rules file."""

    rules: tuple[PlacedRule, ...] = ()
    accounting_groups: tuple[AccountingGroup, ...] = ()
    bans: tuple[Ban, ...] = ()


class _WrittenBan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    owner: str = ""
    issuer: str = ""
    subject: str = ""
    token: str = ""
    group: str = ""
    reason: str = ""
    until: datetime | None = None


def read(tables: Mapping[str, object], place: PlaceOf) -> tuple[RulesFile, list[Finding]]:
    """What a file says, and what is wrong with it; it is to be used only if nothing is refused."""
    reader = _Reader(place)
    for table, content in tables.items():
        match table, content:
            case "rules", list():
                reader.rules(cast("list[object]", content))
            case "bans", list():
                reader.bans(cast("list[object]", content))
            case "accounting_groups", dict():
                reader.accounting_groups(cast("dict[str, object]", content))
            case _:
                reader.unknown(table)
    found = RulesFile(tuple(reader.found), tuple(reader.groups), tuple(reader.banned))
    return found, [*reader.findings, *shadowed(found.rules), *of_two_vos(found.rules)]


class _Reader:
    def __init__(self, place: PlaceOf) -> None:
        self.found: list[PlacedRule] = []
        self.groups: list[AccountingGroup] = []
        self.banned: list[Ban] = []
        self.findings: list[Finding] = []
        self._place = place

    def rules(self, content: Sequence[object]) -> None:
        for number, each in enumerate(content):
            place = self._place(("rules", str(number)))
            rule = self._converted(each, Rule, place)
            if rule is None:
                continue
            try:
                made = PlacedRule(rule, place)
            except PatternError as error:
                self.findings.append(Finding(place, f"{error}."))
                continue
            self.findings += [Finding(place, why, warning=True) for why in made.warnings()]
            self.found.append(made)

    def bans(self, content: Sequence[object]) -> None:
        for number, each in enumerate(content):
            place = self._place(("bans", str(number)))
            written = self._converted(each, _WrittenBan, place)
            if written is None:
                continue
            fields = msgspec.structs.asdict(written)
            until: datetime | None = fields.pop("until")
            # a time without a zone is UTC, here as everywhere in the log
            moment = (
                0.0 if until is None else (until if until.tzinfo else until.replace(tzinfo=UTC)).timestamp()
            )
            ban = Ban(**fields, until=moment, place=place)
            if ban.problem:
                self.findings.append(Finding(place, f"{ban.problem}."))
            else:
                self.banned.append(ban)

    def accounting_groups(self, content: Mapping[str, object]) -> None:
        for group, name in content.items():
            place = self._place(("accounting_groups", group))
            if not isinstance(name, str) or not re.fullmatch(r"[\w.-]+", name):
                self.findings.append(Finding(place, f"{name!r} is no name of an accounting group."))
            else:
                self.groups.append(AccountingGroup(group, name, place))

    def unknown(self, table: str) -> None:
        known = ("rules", "bans", "accounting_groups")
        how = {"rules": "[[rules]]", "bans": "[[bans]]", "accounting_groups": "[accounting_groups]"}.get(
            table
        )
        why = f"write it as {how}" if how else f"a rules file has no table {table}{_near(table, known)}"
        self.findings.append(Finding(self._place((table,)), _ended(why)))

    def _converted(self, value: object, kind: type[T], place: Place) -> T | None:
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            sentence = str(error)
            if found := _UNKNOWN.search(sentence):
                within = When if sentence.endswith("`$.when`") else kind
                sentence = f"there is no {found[1]} here{_near(found[1], within.__struct_fields__)}"
            elif found := _LEVEL.match(sentence):
                sentence = f"there is no level {found[1]}{_near(found[1], [each.value for each in Level])}"
            self.findings.append(Finding(place, _ended(sentence)))
            return None


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith("?") else f"{sentence}."


def _near(name: str, known: Sequence[str]) -> str:
    lower = {each.lower(): each for each in known}
    near = [lower[each] for each in difflib.get_close_matches(name.lower(), list(lower), n=1)]
    return f"; did you mean {near[0]}?" if near else f"; there are {', '.join(known)}"
