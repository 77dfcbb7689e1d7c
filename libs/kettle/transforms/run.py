"""Statements, carried out on one ad in their order."""

import random
import re
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from functools import lru_cache
from typing import Final

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
)
from kettle.classad.ad import as_node
from kettle.classad.printing import unparse_for_macros
from kettle.submit.conditions import Conditions
from kettle.submit.errors import PlacelessError
from kettle.submit.expressions import wire
from kettle.submit.macros import Expander, substitute_self
from kettle.transforms.statements import Statement
from kettle_wire.ads.types import Ad, Expr, Scalar
from kettle_wire.routes import RouteStep

_OWN: Final = "my."
LONGEST: Final = 256 * 1024
"""Characters that a macro, or a statement with its macros, may come to."""
_NO_MACROS: Final[Mapping[str, str]] = {}


class Run:
    """
    One ad on its way through one transform, or through several that share their macros.

    `macros`, by lower-case name, change on the way; where one is missing `configured` is asked.
    """

    def __init__(
        self,
        ad: Ad,
        *,
        now: int,
        macros: MutableMapping[str, str],
        entropy: random.Random,
        configured: Mapping[str, str] = _NO_MACROS,
        view: ClassAd | None = None,
    ) -> None:
        """
        `view` is the same ad for evaluations, if somebody has made it already; it becomes the run's own.
        """
        self.ad: Final = dict(ad)
        self.macros: Final = macros
        self.configured: Final = configured
        self.complaints: Final[list[str]] = []
        """Of the statements that could not be carried out, and were skipped."""
        self.steps: Final[list[RouteStep]] = []
        """What changed, statement by statement."""
        self._view = view or ClassAd.from_wire(ad)
        self._context = Context(now=lambda: now, max_steps=FOREIGN_STEPS)
        self._expander = Expander(_Macros(self), {}, entropy=entropy, context=self._context, longest=LONGEST)
        self._by = ""
        self._line = 0

    def enter(self, source: str, line: int) -> None:
        """What is set from now on is of the transform that is called `source`, and begins on that line."""
        self._by, self._line = source, line

    def spelled(self, name: str) -> str:
        """An attribute's name as the ad has it; as it was given if the ad does not."""
        key = name.lower()
        return self._view.spelling(key) if key in self._view.stored else name

    def value(self, text: str) -> Value:
        """What an expression comes to here; raises PlacelessError, ClassAdError."""
        value = evaluate(parse(self._expander.expand(text)), my=self._view, context=self._context)
        if value is ERROR:
            raise PlacelessError(f"'{text}' evaluates to an error")
        return value

    def meets(self, requirements: Sequence[str]) -> bool:
        """Whether all are true of the ad as it is now; what cannot be evaluated is not."""
        if not requirements:
            return True
        try:
            return all(is_true(self.value(text)) for text in requirements)
        except (PlacelessError, ClassAdError):
            return False

    def carry_out(self, statements: Iterable[Statement], source: str, protected: frozenset[str]) -> None:
        """All statements of a transform that is called `source`; no pattern reaches what is `protected`."""
        self._by = source
        conditions = Conditions()
        for each in statements:
            self._line = each.line
            try:
                if each.word in {"if", "elif", "else", "endif"}:
                    conditions.read(each.word, each.text, each.line, lambda: self._expander)
                elif conditions.active:
                    self._carry_out(each, protected)
            except (PlacelessError, ClassAdError) as error:
                self.complaints.append(f"{source}, line {each.line}: {error}")

    def put(self, name: str, value: Scalar) -> None:
        """Set an attribute."""
        name = self.spelled(name)
        before = self.ad.get(name)
        self.ad[name] = value
        self._view[name] = value
        if type(before) is not type(value) or before != value:
            self.steps.append(RouteStep(self._by, self._line, name, before, value))

    def _carry_out(self, each: Statement, protected: frozenset[str]) -> None:
        match each.word:
            case "=":
                key = each.name.lower()
                self._define(key, substitute_self(each.name, each.text, self.macros.get(key, "")))
            case "evalmacro":
                value = self.value(each.text)
                self._define(each.name.lower(), _literal(value if isinstance(value, str) else _text(value)))
            case "set":
                self.put(each.name, _written(self._expander.expand(each.text)))
            case "default":
                if self.spelled(each.name) not in self.ad:
                    self.put(each.name, _written(self._expander.expand(each.text)))
            case "evalset":
                self.put(each.name, wire(as_node(self.value(each.text))))
            case "copy" | "rename" | "delete":
                self._move(each.word, each.name, each.text)
            case "copy/" | "rename/" | "delete/":
                self._move_all(each, protected)
            case _:
                pass

    def _define(self, key: str, text: str) -> None:
        if len(text) > LONGEST:
            raise PlacelessError(f"the macro {key} becomes longer than {LONGEST:,} characters")
        self.macros[key] = text
        self.steps.append(RouteStep(self._by, self._line, f"$({key})", None, text))

    def _move(self, word: str, old: str, new: str) -> None:
        name = self.spelled(old)
        if name not in self.ad:
            return
        value = self.ad[name]
        if word != "copy":
            del self.ad[name], self._view[name]
            self.steps.append(RouteStep(self._by, self._line, name, value, None))
        if word != "delete":
            self.put(new, value)

    def _move_all(self, each: Statement, protected: frozenset[str]) -> None:
        """The whole set of names is taken before anything changes."""
        word = each.word.removesuffix("/")
        for name, new in [(name, _reached(each.name, each.text, name)) for name in self.ad]:
            if new is not None and name.lower() not in protected and new.lower() not in protected:
                self._move(word, name, new)


class _Macros(Mapping[str, str]):
    """
    Macros, and the attributes of the ad as `MY.Name`: strings without their quotes, all others as they are written.

    What is in the ad is the submitter's: it is a value, and never looked through for macros.
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    def __getitem__(self, key: str) -> str:
        if not key.startswith(_OWN):
            found = self._run.macros.get(key)
            return self._run.configured[key] if found is None else found
        value = self._run.ad[self._run.spelled(key[len(_OWN) :])]
        return _literal(value if isinstance(value, str) else _said(value))

    def __iter__(self) -> Iterator[str]:
        return iter({**self._run.configured, **self._run.macros})

    def __len__(self) -> int:
        return len({**self._run.configured, **self._run.macros})


@lru_cache(maxsize=4096)
def _written(text: str) -> Scalar:
    """An expression as it travels."""
    return wire(parse(text))


@lru_cache(maxsize=1 << 16)
def _reached(pattern: str, text: str, name: str) -> str | None:
    """
    What a pattern makes of a name; None: it does not match.  Job after job has the same names, and most patterns match few of them.
    """
    found = re.search(pattern, name, re.IGNORECASE)
    return None if found is None else _filled(text, found)


def _filled(text: str, found: re.Match[str]) -> str:
    """
    Text in which a backslash and 0 is what a pattern matched, and with 1 to 9 its groups; one that is not there is empty.
    """
    groups = (found[0], *found.groups(default=""))
    return re.sub(r"\\(\d)", lambda number: dict(enumerate(groups)).get(int(number[1]), ""), text)


def _literal(text: str) -> str:
    """As the text of a macro: what it comes to is this text, whatever is in it."""
    return text.replace("$", "$(DOLLAR)")


def _text(value: Value) -> str:
    return unparse_for_macros(as_node(value))


def _said(value: Scalar) -> str:
    return value.expr if isinstance(value, Expr) else _text(value)
