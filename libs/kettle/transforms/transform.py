"""Statements, carried out on one ad in their order."""

import random
import re
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Final

import msgspec

from kettle.classad import (
    ERROR,
    FOREIGN_STEPS,
    ClassAd,
    ClassAdError,
    Context,
    Value,
    evaluate,
    is_true,
    parse,
    unparse,
)
from kettle.classad.ad import as_node
from kettle.submit.conditions import Conditions
from kettle.submit.errors import PlacelessError
from kettle.submit.expressions import wire
from kettle.submit.macros import Expander, substitute_self
from kettle_wire.ads.types import Ad, Expr, Scalar

PATTERNED: Final[Mapping[str, str]] = {"copy": "copy/", "rename": "rename/", "delete": "delete/"}
"""The statement on one attribute -> that on all whose names a pattern matches."""
_OPEN: Final = frozenset({*PATTERNED.values(), "evalmacro"})
"""Statements after which the text does not show which attributes matter."""
_OWN: Final = "my."
LONGEST: Final = 256 * 1024
"""Characters that a macro, or a statement with its macros, may come to."""
_PASTING: Final = re.compile(r"\(\s*my\.", re.IGNORECASE)
_WHOLE: Final = re.compile(
    r"\b(eval|unresolved|parent|root|toplevel)\b|\b(my|self)\b(?!\.)|\]\s*\.|\[", re.IGNORECASE
)
"""
What looks at attributes that it does not name: see `kettle.classad.conceals`; there may be macros in the text.
"""


class Statement(msgspec.Struct, frozen=True):
    """One statement: what it does, to what, and with what."""

    line: int
    word: str
    """In lower case; `=` assigns a macro."""
    name: str
    text: str

    @property
    def changes(self) -> tuple[str, ...]:
        """The attributes that it changes, as far as it names them."""
        match self.word:
            case "set" | "evalset" | "default" | "delete":
                return (self.name,)
            case "copy":
                return (self.text,)
            case "rename":
                return (self.name, self.text)
            case _:
                return ()


class Outcome(msgspec.Struct, frozen=True):
    """The result for an ad."""

    ad: Ad
    complaints: list[str]
    """Of the statements that could not be carried out, and were skipped."""


class Transform(msgspec.Struct, frozen=True):
    """What is done to each ad that meets its requirements."""

    source: str
    statements: tuple[Statement, ...]
    protected: frozenset[str] = frozenset()
    """In lower case, attributes that no pattern reaches."""

    def apply(
        self,
        ad: Ad,
        *,
        now: int = 0,
        macros: dict[str, str] | None = None,
        entropy: random.Random | None = None,
    ) -> Outcome | None:
        """
        A changed copy of an ad; None: its requirements are not true of it.

        `macros`, by lower-case name, are shared by the transforms of one chain: what one defines the next one sees.
        """
        run = _Run(self, ad, now, {} if macros is None else macros, entropy or random.SystemRandom())
        return Outcome(run.ad, run.complaints) if run.wanted() and run.through() else None

    @property
    def words(self) -> frozenset[str] | None:
        """
        In lower case all that could be the name of an attribute; None: any could matter.

        It does where a pattern matches names, and where what a submitter wrote becomes part of an expression.
        """
        if any(
            each.word in _OPEN or _PASTING.search(each.text) or _WHOLE.search(each.text)
            for each in self.statements
        ):
            return None
        text = " ".join(f"{each.name} {each.text}" for each in self.statements)
        return frozenset(re.findall(r"[a-z_][a-z0-9_]*", text.lower()))


class _Macros(Mapping[str, str]):
    """
    Macros, and the attributes of the ad as `MY.Name`: strings without their quotes, all others as they are written.

    What is in the ad is the submitter's: it is a value, and never looked through for macros.
    """

    def __init__(self, run: "_Run") -> None:
        self._run = run

    def __getitem__(self, key: str) -> str:
        if not key.startswith(_OWN):
            return self._run.macros[key]
        value = self._run.ad[self._run.spelled(key[len(_OWN) :])]
        return _literal(value if isinstance(value, str) else _text(value))

    def __iter__(self) -> Iterator[str]:
        return iter(self._run.macros)

    def __len__(self) -> int:
        return len(self._run.macros)


class _Run:
    """One transform on its way through one ad."""

    def __init__(
        self,
        transform: Transform,
        ad: Ad,
        now: int,
        macros: MutableMapping[str, str],
        entropy: random.Random,
    ) -> None:
        self.ad = dict(ad)
        self.macros = macros
        self.complaints: list[str] = []
        self._transform = transform
        self._context = Context(now=lambda: now, max_steps=FOREIGN_STEPS)
        self._conditions = Conditions()
        self._expander = Expander(_Macros(self), {}, entropy=entropy, context=self._context, longest=LONGEST)

    def spelled(self, name: str) -> str:
        """An attribute's name as the ad has it; as it was given if the ad does not."""
        return next((known for known in self.ad if known.lower() == name.lower()), name)

    def wanted(self) -> bool:
        """Whether all REQUIREMENTS are true of the ad; what cannot be evaluated is not."""
        for each in self._transform.statements:
            if each.word == "requirements":
                try:
                    if not is_true(self._value(each.text)):
                        return False
                except (PlacelessError, ClassAdError):
                    return False
        return True

    def through(self) -> bool:
        """Carry all statements out."""
        for each in self._transform.statements:
            try:
                if each.word in {"if", "elif", "else", "endif"}:
                    self._conditions.read(each.word, each.text, each.line, lambda: self._expander)
                elif self._conditions.active:
                    self._carry_out(each)
            except (PlacelessError, ClassAdError) as error:
                self.complaints.append(f"{self._transform.source}, line {each.line}: {error}")
        return True

    def _carry_out(self, each: Statement) -> None:
        match each.word:
            case "=":
                key = each.name.lower()
                self._define(key, substitute_self(each.name, each.text, self.macros.get(key, "")))
            case "evalmacro":
                value = self._value(each.text)
                text = value if isinstance(value, str) else unparse(as_node(value))
                self._define(each.name.lower(), _literal(text))
            case "set":
                self._put(each.name, wire(parse(self._expander.expand(each.text))))
            case "default":
                if self.spelled(each.name) not in self.ad:
                    self._put(each.name, wire(parse(self._expander.expand(each.text))))
            case "evalset":
                self._put(each.name, wire(as_node(self._value(each.text))))
            case "copy" | "rename" | "delete":
                self._move(each.word, each.name, each.text)
            case "copy/" | "rename/" | "delete/":
                self._move_all(each)
            case _:
                pass

    def _define(self, key: str, text: str) -> None:
        if len(text) > LONGEST:
            raise PlacelessError(f"the macro {key} becomes longer than {LONGEST:,} characters")
        self.macros[key] = text

    def _value(self, text: str) -> Value:
        value = evaluate(
            parse(self._expander.expand(text)), my=ClassAd.from_wire(self.ad), context=self._context
        )
        if value is ERROR:
            raise PlacelessError(f"'{text}' evaluates to an error")
        return value

    def _put(self, name: str, value: Scalar) -> None:
        self.ad[self.spelled(name)] = value

    def _move(self, word: str, old: str, new: str) -> None:
        name = self.spelled(old)
        if name not in self.ad:
            return
        value = self.ad[name] if word == "copy" else self.ad.pop(name)
        if word != "delete":
            self._put(new, value)

    def _move_all(self, each: Statement) -> None:
        """The whole set of names is taken before anything changes."""
        pattern = re.compile(each.name, re.IGNORECASE)
        word = each.word.removesuffix("/")
        for name in list(self.ad):
            found = pattern.search(name)
            if found is None or name.lower() in self._transform.protected:
                continue
            new = _filled(each.text, found)
            if new.lower() not in self._transform.protected:
                self._move(word, name, new)


def _filled(text: str, found: re.Match[str]) -> str:
    """
    Text in which a backslash and 0 is what a pattern matched, and with 1 to 9 its groups; one that is not there is empty.
    """
    groups = (found[0], *found.groups(default=""))
    return re.sub(r"\\(\d)", lambda number: dict(enumerate(groups)).get(int(number[1]), ""), text)


def _literal(text: str) -> str:
    """As the text of a macro: what it comes to is this text, whatever is in it."""
    return text.replace("$", "$(DOLLAR)")


def _text(value: Scalar) -> str:
    return value.expr if isinstance(value, Expr) else unparse(as_node(value))
