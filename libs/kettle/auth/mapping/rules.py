r"""
Rules of a site over everything that a credential says: the first that applies gives name, groups, levels, accounting group and VO.

    [[rules]]
    when = { issuer = "https://cms-auth.example.org/", groups = ["/cms/uscms"], subject = "/^([a-z0-9-]+)$/" }
    owner = '\1@cms'
    levels = ["WRITE"]
    accounting_group = "group_cms"
    vo = "cms"
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final

import msgspec

from kettle.auth.mapping.findings import Because, Finding, Place
from kettle.auth.mapping.levels import Level
from kettle.auth.mapping.map_file import METHODS
from kettle.auth.mapping.names import missing_group
from kettle.auth.mapping.patterns import Pattern, PatternError
from kettle.auth.mapping.principals import Principal, claim_texts, in_group

VO: Final = r"^[A-Za-z0-9._-]{0,128}$"
"""What the name of a VO is like."""
OneOrMore = str | tuple[str, ...]


class When(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """To whom a rule applies: to those for whom all that is given is so."""

    method: OneOrMore = ()
    """One of these ways to show who one is."""
    issuer: OneOrMore = ()
    """One of these issuers, letter for letter."""
    groups: OneOrMore = ()
    """In one of these groups; `/cms/*` is any below `/cms`."""
    scopes: OneOrMore = ()
    """With all of these scopes."""
    subject: str = ""
    """The subject, or the login name: a text, or an expression as in `/^([a-z]+)$/`, whose groups the rule may use."""
    claims: dict[str, OneOrMore] = {}
    """Each of these claims says one of these: texts, or expressions."""


class Rule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    r"""
    What somebody is and may do to whom it applies; `\1` is the first group of the pattern of the subject.
    """

    when: When = When()
    owner: str = ""
    """The name in the pool, with or without a domain; empty: as the map file says."""
    groups: tuple[str, ...] = ()
    """The groups in the pool; none: those of the credential."""
    levels: tuple[Level, ...] = ()
    """What it gives, beside the allow lists."""
    accounting_group: str = ""
    vo: Annotated[str, msgspec.Meta(pattern=VO)] = ""
    """The virtual organisation for which somebody comes; compute entrypoints take jobs by it. Empty: for none."""
    comment: str = ""
    """What people should know about it."""


class PlacedRule:
    """A rule that can be used, and where it is written."""

    def __init__(self, rule: Rule, place: Place) -> None:
        """Raises PatternError for what cannot be used."""
        self.rule: Final = rule
        self.place: Final = place
        when = rule.when
        self.subject: Final = Pattern.written(when.subject) if when.subject else None
        self._claims = {
            name: tuple(Pattern.written(each) for each in texts(said)) for name, said in when.claims.items()
        }
        groups = self.subject.groups if self.subject else 0
        for template in (rule.owner, rule.accounting_group, *rule.groups):
            if why := missing_group(template, groups):
                raise PatternError(why)

    def apply(self, principal: Principal) -> tuple[str, ...] | None:
        """What the pattern of the subject matched, with its groups, if it applies to somebody; else None."""
        when = self.rule.when
        if (
            (when.method and principal.method not in texts(when.method))
            or (when.issuer and principal.issuer not in texts(when.issuer))
            or (when.groups and not any(in_group(principal.groups, each) for each in texts(when.groups)))
            or not set(texts(when.scopes)) <= set(principal.scopes)
        ):
            return None
        for name, wanted in self._claims.items():
            said = claim_texts(principal.claims, name)
            if not any(pattern.match(text) is not None for pattern in wanted for text in said):
                return None
        subject = principal.subject or principal.text
        return (subject,) if self.subject is None else self.subject.match(subject)

    def because(self, groups: Sequence[str]) -> Because:
        """The rule as a reason."""
        return Because(self.place, str(self), tuple(groups[1:]))

    def warnings(self) -> Iterator[str]:
        """What in it is seldom meant."""
        when = self.rule.when
        for pattern in self._patterns():
            yield from pattern.warnings()
        for method in set(texts(when.method)).difference(METHODS):
            yield f"it never applies: nobody is known by {method}; there are {', '.join(METHODS)}"
        for issuer in texts(when.issuer):
            if issuer.startswith("/") or "*" in issuer:
                yield f"it never applies: an issuer is compared letter for letter, and {issuer} is the name of none"
        tokens = not when.method or bool({"SCITOKENS"} & set(texts(when.method)))
        if tokens and not when.issuer and (when.subject or when.groups or when.scopes or when.claims):
            yield "it applies to tokens of any issuer: what one issuer says means nothing of another, so name the issuer"
        rule = self.rule
        if not any((rule.owner, rule.groups, rule.levels, rule.accounting_group, rule.vo)):
            yield "it gives nothing, and keeps later rules from being asked"

    def names_one_owner_of_two_vos(self, other: "PlacedRule") -> bool:
        """Whether both give the same name, and not the same VO: services know people by their names."""
        mine, its = self.rule, other.rule
        return bool(mine.owner) and "\\" not in mine.owner and mine.owner == its.owner and mine.vo != its.vo

    def covers(self, other: "PlacedRule") -> bool:
        """Whether it certainly applies wherever another does."""
        mine, its = self.rule.when, other.rule.when
        return (
            _any_of(mine.method, its.method)
            and _any_of(mine.issuer, its.issuer)
            and _any_of(mine.groups, its.groups)
            and set(texts(mine.scopes)) <= set(texts(its.scopes))
            and (self.subject is None or (other.subject is not None and self.subject.covers(other.subject)))
            and all(
                name in its.claims and _any_of(said, its.claims[name]) for name, said in mine.claims.items()
            )
        )

    def _patterns(self) -> Iterator[Pattern]:
        if self.subject is not None:
            yield self.subject
        for patterns in self._claims.values():
            yield from patterns

    def __str__(self) -> str:
        when = self.rule.when
        said: Mapping[str, OneOrMore] = {
            "method": when.method, "issuer": when.issuer, "groups": when.groups, "scopes": when.scopes,
            "subject": when.subject, **when.claims,
        }  # fmt: skip
        conditions = ", ".join(f"{name} = {' '.join(texts(each))}" for name, each in said.items() if each)
        gives = {
            "owner": self.rule.owner, "groups": " ".join(self.rule.groups), "levels": " ".join(self.rule.levels),
            "accounting_group": self.rule.accounting_group, "vo": self.rule.vo,
        }  # fmt: skip
        given = ", ".join(f"{name} {text}" for name, text in gives.items() if text)
        return f"when {conditions or 'anybody'}: {given or 'nothing'}"


def _any_of(wanted: OneOrMore, narrower: OneOrMore) -> bool:
    """Whether who satisfies the narrower condition satisfies the other; none is satisfied by all."""
    return not wanted or (bool(narrower) and set(texts(narrower)) <= set(texts(wanted)))


def texts(said: OneOrMore) -> tuple[str, ...]:
    """One text or several, as several."""
    return ((said,) if said else ()) if isinstance(said, str) else said


def of_two_vos(rules: Sequence[PlacedRule]) -> Iterator[Finding]:
    """Rules with a name that another gives to people of another VO: what counts is who of them came last."""
    for at, rule in enumerate(rules):
        first = next((before for before in rules[:at] if before.names_one_owner_of_two_vos(rule)), None)
        if first is not None:
            why = f"{first.place} gives {rule.rule.owner} the VO {first.rule.vo or '(none)'}, and this rule another"
            yield Finding(
                rule.place, f"{why}: of two who come as one, the last says the VO of both", warning=True
            )


def shadowed(rules: Sequence[PlacedRule]) -> Iterator[Finding]:
    """Rules that are never asked, because one before them applies wherever they would."""
    for at, rule in enumerate(rules):
        first = next((before for before in rules[:at] if before.covers(rule)), None)
        if first is not None:
            yield Finding(rule.place, f"never counts: {first.place} ({first}) comes first", warning=True)
