"""
Random ads in tables, what happens to them, and what is asked of them.

Ads of one table are alike, as those of machines are: an attribute has one kind of value, or one expression, in nearly
all of them, and in some tables anything.
All of it comes from a `random.Random`, so that a seed gives the same table everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import numpy as np

from kettle.classad import ClassAdParseError, parse
from kettle.classad.columnar import Table
from kettle_wire.ads import Ad, Expr, Scalar

from .classad_texts import Texts

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    Cell: TypeAlias = Callable[[], Scalar | None]

_T = TypeVar("_T")

ATTRIBUTES: Final = ("a", "b", "c", "x", "Memory", "Owner", "l", "n")
"""What the ads of a table have; `classad_texts` asks for these names."""
OTHERS: Final = ("a", "y", "Want", "Memory", "Owner", "nosuch")
"""What the ad on the other side has: some names of both, some that it alone may have."""
_SCOPES: Final = ("", "", "", "MY.", "TARGET.", "TARGET.", "my.", "Target.", "self.", "other.")

_INTEGERS: Final = (0, 1, 2, 3, -1, 7, 4096, 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1)
_REALS: Final = (
    0.0, -0.0, 1.0, 1.5, 2.0, -7.25, 2.0**53, 2.0**63, 1e308, -1e308, 5e-324, float("inf"), float("-inf"), float("nan"),
)  # fmt: skip
_STRINGS: Final = (
    "x",
    "X",
    "yy",
    "",
    "1.2",
    "X86_64",
    "x86_64",
    "é",
    "É",
    "Straße",
    "STRASSE",
    "\u0130",
    "a,B;c",
)
_CONSTANTS: Final = (
    "0", "1", "2", "-1", "4096", "9223372036854775807", "-9223372036854775808", "9007199254740993", "1.5", "0.0", "1e308",
    'real("NaN")', 'real("INF")', "true", "false", '"x"', '"X86_64"', '"\u00e9"', '"\u00c9"', '"nowhere"', '""', "undefined", "error",
)  # fmt: skip
_COMPARISONS: Final = ("<", "<=", "==", "!=", ">=", ">", "==", ">=", "=?=", "=!=")
_ARITHMETIC: Final = ("+", "-", "*", "/", "%", "+", "*")
_HIDING: Final[tuple[Scalar, ...]] = (1, "x", Expr("a"))
"""What stands behind an attribute that is called like a side."""
_PREDICATES: Final = ("isUndefined", "isError", "isString", "isInteger", "isReal", "isBoolean")


class Tables:
    """
    Makes a table's ads and expressions over them; `keys` is what the table has now, and the ads as they came.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._texts = Texts(chance)
        self._cells: Mapping[str, Cell] = {name: self._column() for name in ATTRIBUTES}
        self._others: Mapping[str, Cell] = {name: self._column() for name in OTHERS}
        self.table = Table(quiet=["b"] if self._odds(50) else [])
        self.ads: dict[str, Ad] = {}
        self._last = 0

    # -- expressions -------------------------------------------------------------------------------------------------

    def expression(self) -> str:
        """What a Requirements may be: often a chain of clauses, sometimes anything."""
        dice = self._chance.randrange(100)
        if dice < 50:
            return self.clauses()
        if dice < 75:
            return self.clause(2)
        return self._parsable(lambda: self._texts.expression(self._chance.choice((1, 2, 3))))

    def clauses(self) -> str:
        """A conjunction or a disjunction, or one within the other."""
        op, inner = self._pick((("&&", "||"), ("||", "&&")))
        clauses = [self.clause(self._chance.randrange(2)) for _ in range(self._chance.randrange(2, 6))]
        if self._odds(40):
            clauses.append(f"({self.clause(1)} {inner} {self.clause(0)})")
        return f" {op} ".join(clauses)

    def clause(self, depth: int) -> str:
        """A condition on the values of both sides."""
        dice = self._chance.randrange(100)
        if dice < 55:
            return f"({self._number(depth)} {self._pick(_COMPARISONS)} {self._number(depth)})"
        if dice < 65:
            return self._reference()
        if dice < 75:
            return f"{self._pick(_PREDICATES)}({self._number(depth)})"
        if dice < 82:
            return f"!({self.clause(depth - 1)})" if depth > 0 else f"!{self._reference()}"
        if dice < 88:
            return f"({self.clause(0)} ? {self._number(depth)} : {self._number(depth)})"
        if dice < 93:
            return f"ifThenElse({self.clause(0)}, {self._number(0)}, {self._number(depth)})"
        return self._pick((
            f'regexp("^x", {self._reference()}, "i")',
            f"stringListMember({self._reference()}, {self._reference()})",
            f"(random() < {self._pick(('0.5', '0.1'))})",
            f"(size({self._reference()}) > 1)",
        ))  # fmt: skip

    def _number(self, depth: int) -> str:
        """An operand: a name, a constant, or arithmetic with these."""
        dice = self._chance.randrange(100)
        if depth <= 0 or dice < 60:
            return self._pick(_CONSTANTS) if self._odds(30) else self._reference()
        if dice < 85:
            return f"({self._number(depth - 1)} {self._pick(_ARITHMETIC)} {self._number(depth - 1)})"
        if dice < 93:
            return f"({self._reference()} ?: {self._number(depth - 1)})"
        return f"({self._pick(('-', '+', '~'))}{self._reference()})"

    def _reference(self) -> str:
        return self._pick(_SCOPES) + self._pick((*ATTRIBUTES, *ATTRIBUTES, *OTHERS))

    # -- ads ---------------------------------------------------------------------------------------------------------

    def _column(self) -> Cell:
        """
        What an attribute is in the ads of this table: of one kind, of one kind with gaps, one expression, anything.
        """
        kind = self._pick((_INTEGERS, _REALS, (False, True), _STRINGS, _INTEGERS[:5], _STRINGS[:4]))
        usual = tuple(self._chance.sample(kind, min(len(kind), self._chance.choice((2, 4, 12)))))
        shared = [Expr(self._parsable(self._short)) for _ in range(2)]
        gaps: tuple[Scalar | None, ...] = (None, None, Expr("undefined"), Expr("error"), *shared)
        dice = self._chance.randrange(100)
        if dice < 40:
            return lambda: self._pick(usual)
        if dice < 60:
            return lambda: self._pick(usual) if self._odds(90) else self._pick(gaps)
        if dice < 75:
            return lambda: shared[0]
        if dice < 82:
            return lambda: self._pick(shared)
        return self._anything

    def _anything(self) -> Scalar | None:
        dice = self._chance.randrange(100)
        if dice < 60:
            return self._pick(self._pick((_INTEGERS, _REALS, (False, True), _STRINGS)))
        if dice < 75:
            return None
        if dice < 80:
            return Expr(self._pick(("undefined", "error", "5", '"x"', "1 +")))
        return Expr(self._parsable(self._short))

    def _short(self) -> str:
        """An expression as it stands in an ad; those of several attributes go in circles."""
        if self._odds(60):
            return self._pick((self.clause(1), self._number(1), self._reference()))
        return self._texts.expression(self._chance.choice((1, 2)))

    def ad(self) -> Ad:
        """One more ad of this table."""
        return self._drawn(self._cells)

    def other(self) -> Ad:
        """An ad for the other side, in which each name is there or not."""
        drawn = self._drawn(self._others)
        return {name: value for name, value in drawn.items() if self._odds(70)}

    def _drawn(self, cells: Mapping[str, Cell]) -> Ad:
        """
        What each column gives, with names in other spellings and other orders, seldom with one that hides a side.
        """
        ad: Ad = {}
        for name, cell in cells.items():
            value = cell()
            if value is not None:
                ad[name if self._odds(95) else name.swapcase()] = value
        if self._odds(1):
            ad[self._pick(("MY", "Target"))] = self._pick(_HIDING)
        if self._odds(2):
            ad = {name: ad[name] for name in reversed(ad)}
        if self._odds(1):
            ad = {"A": 1, **ad}  # a second spelling: the last one counts
        return ad

    def _parsable(self, draw: Callable[[], str]) -> str:
        """The next text that is an expression."""
        while True:
            text = draw()
            try:
                parse(text)
            except ClassAdParseError:
                continue
            return text

    # -- changes -----------------------------------------------------------------------------------------------------

    def fill(self, count: int) -> None:
        """So many more ads, one after the other or all at once."""
        fresh = {self._key(): self.ad() for _ in range(count)}
        self.ads |= fresh
        if self._odds(50):
            self.table.put_many(fresh.items())
        else:
            for key, ad in fresh.items():
                self.table.put(key, ad)

    def change(self) -> None:
        """Something happens to the table."""
        dice = self._chance.randrange(100)
        if dice < 15 or not self.ads:
            self.fill(self._chance.randrange(1, 4))
        elif dice < 35:
            key = self._pick(tuple(self.ads))
            del self.ads[key]
            self.table.remove(key)
        elif dice < 50:
            self._put(self._pick(tuple(self.ads)), self.ad())
        elif dice < 60:
            again = {key: self.ad() for key in self._chance.sample(tuple(self.ads), min(3, len(self.ads)))}
            again[self._key()] = self.ad()
            self.ads |= again
            self.table.put_many(again.items())
        else:
            key = self._pick(tuple(self.ads))
            self._put(key, self._touched(self.ads[key]))

    def _touched(self, ad: Ad) -> Ad:
        """The ad with one value changed, gone or new."""
        name = self._pick(ATTRIBUTES)
        spelled = next((known for known in ad if known.lower() == name.lower()), name)
        value = self._cells[name]() if self._odds(70) else self._anything()
        if value is None:
            return {known: stored for known, stored in ad.items() if known.lower() != name.lower()}
        return {**ad, spelled: value}

    def _put(self, key: str, ad: Ad) -> None:
        self.ads[key] = ad
        self.table.put(key, ad)

    def _key(self) -> str:
        self._last += 1
        return f"slot{self._last}@host"

    # -- which rows, and what stands in their place -------------------------------------------------------------------

    def rows(self) -> npt.NDArray[np.int64] | None:
        """The numbers of some rows in any order, or all of them."""
        count = len(self.table)
        dice = self._chance.randrange(10)
        if dice < 6:
            return None
        chosen = self._chance.sample(range(count), count if dice == 6 else self._chance.randrange(count + 1))
        return np.array(chosen if dice < 8 else sorted(chosen), np.int64)

    def overlay(self) -> dict[str, npt.NDArray[np.int64]]:
        """Integers in the place of an attribute, most times none."""
        if self._odds(80):
            return {}
        numbers = [self._chance.choice((0, 1, 4096)) for _ in range(len(self.table))]
        return {self._pick(("a", "memory", "cpus")): np.array(numbers, np.int64)}

    def _pick(self, choices: Sequence[_T]) -> _T:
        return self._chance.choice(choices)

    def _odds(self, percent: int) -> bool:
        return self._chance.randrange(100) < percent
