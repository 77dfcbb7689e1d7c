"""
Random expressions and ads, made to meet every corner of the language.

All of it comes from a `random.Random`, so that a seed gives the same cases everywhere and a property test can shrink them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from . import classad_words as words

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence

_T = TypeVar("_T")


class Texts:
    """Makes texts; `depth` bounds how far an expression nests."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._kinds: Mapping[str, Callable[[int], str]] = {
            "any": self.expression,
            "condition": self.expression,
            "number": self._number,
            "integer": lambda _: self._pick(words.INTEGERS),
            "badlimit": lambda _: self._pick(("0", "-1", "0.0", "-1.5", "true", '"a"', "undefined", "error", "{}")),
            "text": lambda depth: self._string() if self._odds(80) else self.expression(depth),
            "code": lambda depth: self._quoted(self.expression(depth)) if self._odds(60) else self.expression(depth),
            "reference": self._reference,
            "quanta": lambda depth: self._list(depth, self._number) if self._odds(50) else self._number(depth),
            "collection": lambda depth: self._pick((self._list_of, self._ad))(depth) if self._odds(60) else self.expression(depth),
            "list": lambda depth: self._list(depth, self.expression),
            "numbers": lambda depth: self._list(depth, self._number),
            "texts": lambda depth: self._list(depth, lambda _: self._string()),
            "ads": self._ads,
            "joinable": lambda depth: self._list(depth, self.expression) if self._odds(40) else self.expression(depth),
            "moment": lambda depth: self._literal_of(self._times(words.ABSOLUTE, words.NOT_ABSOLUTE)) if self._odds(40) else self._time(depth),
            "offset": lambda depth: self._pick(("0", "3600", "-3600", "1800.5", "-1", "relTime(60)", "true", "100000", "-1.5", '"a"')),
            "duration": lambda depth: self._literal_of(self._times(words.RELATIVE, words.NOT_RELATIVE)) if self._odds(40) else self._time(depth),
            "instant": self._time,
            "time": self._time,
            "splittime": lambda depth: self._split_time(depth) if self._odds(40) else self._time(depth),
            "nobody": lambda _: self._pick(('"nobody at all"', "1", "undefined", "error", '""', "{}")),
            "version12": lambda _: self._pick(("1", "2", "0", "3", "true", '"1"', "undefined", "1.0")),
            **{
                kind: partial(self._text_of, texts)
                for kind, texts in {
                    "version": words.VERSIONS, "pattern": words.PATTERNS, "subject": (*words.STRINGS, *words.LISTS), "options": words.OPTIONS,
                    "substitution": words.SUBSTITUTIONS, "format": words.FORMATS, "items": words.LISTS, "delimiters": words.DELIMITERS,
                    "environment": words.ENVIRONMENTS, "arguments": words.ARGUMENTS, "operator": words.OPERATORS,
                    "address": (*words.STRINGS, "slot1_1@slot1@h", "a@", "@h", "a@b"),
                }.items()
            },
        }  # fmt: skip

    def _pick(self, choices: Sequence[_T]) -> _T:
        return self._chance.choice(choices)

    def _odds(self, percent: int) -> bool:
        return self._chance.randrange(100) < percent

    def _gap(self) -> str:
        dice = self._chance.randrange(60)
        if dice > 12:
            return ""
        return " " if dice > 3 else ("\n", "/* c */", "// c\n", "\t")[dice]

    def expression(self, depth: int) -> str:
        """An expression of any kind."""
        if depth <= 0:
            return self._leaf()
        return self._pick((
            self._leaf_of, self._binary, self._binary, self._binary, self._unary, self._parentheses, self._conditional,
            self._subscript, self._selection, self._call, self._call, self._call, self._list_of, self._ad, self._time, self._reference,
        ))(depth - 1)  # fmt: skip

    def _leaf_of(self, _: int) -> str:
        return self._leaf()

    def _leaf(self) -> str:
        dice = self._chance.randrange(20)
        if dice < 6:
            return self._reference(0)
        if dice < 10:
            return self._pick(words.INTEGERS)
        if dice < 12:
            return self._pick(words.BAD_NUMBERS if self._odds(1) else words.REALS)
        return self._pick(words.WORDS) if dice < 16 else self._string()

    def _string(self) -> str:
        text = self._literal_of(words.STRINGS)
        return text if not self._odds(4) else text + self._gap() + self._literal_of(words.STRINGS)

    def _literal_of(self, texts: Sequence[str]) -> str:
        """A string of a list; rarely something else."""
        text = self._pick(("\\0", "a\\")) if self._chance.randrange(300) == 0 else self._pick(texts)
        return f'"{text}"' if self._odds(94) else self._leaf()

    def _text_of(self, texts: Sequence[str], _: int) -> str:
        return self._literal_of(texts)

    def _quoted(self, text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    def _name(self) -> str:
        return self._pick(words.ODD_NAMES) if self._odds(4) else self._pick(words.NAMES)

    def _reference(self, depth: int) -> str:
        dice = self._chance.randrange(20)
        if dice < 10:
            return self._pick(words.QUOTED_NAMES) if self._odds(1) else self._name()
        if dice < 16:
            return f"{self._pick(words.MAGIC)}.{self._name()}"
        if dice == 16:
            return "." + self._name()
        if dice == 17:
            return self._pick(words.ADS if self._odds(80) else words.VALUES_OF_MATCHES)
        if dice == 18 and depth > 0:
            return self._selection(depth - 1)
        return f"{self._pick(words.MAGIC)}.{self._pick(words.MAGIC)}.{self._name()}"

    def _number(self, _: int) -> str:
        dice = self._chance.randrange(20)
        if dice < 8:
            return self._pick(words.INTEGERS)
        if dice < 15:
            return self._pick(words.REALS)
        return self._pick(("true", "false", "undefined", '"3"')) if dice < 18 else self._leaf()

    def _binary(self, depth: int) -> str:
        return f"{self.expression(depth)}{self._gap()}{self._pick(words.BINARY)}{self._gap()}{self.expression(depth)}"

    def _unary(self, depth: int) -> str:
        return f"{self._pick('-+!~')}{self._gap()}{self.expression(depth)}"

    def _parentheses(self, depth: int) -> str:
        return f"({self._gap()}{self.expression(depth)}{self._gap()})"

    def _conditional(self, depth: int) -> str:
        parts = (self._gap() + self.expression(depth) + self._gap() for _ in range(3))
        return "{}?{}:{}".format(*parts)

    def _subscript(self, depth: int) -> str:
        base = self._pick((self._list_of, self._ad, self.expression))(depth)
        index = self._pick(
            ("0", "1", "-1", "9", '"a"', '"X"', '"nosuch"', "true", "1.0", "undefined", "error", "x")
        )
        return f"{base}[{index if self._odds(80) else self.expression(depth)}]"

    def _selection(self, depth: int) -> str:
        """
        Not of what a function returns: the reference reads memory it has given back, and dies now and then.
        """
        base = self._pick((self._list_of, self._ad, self._ad, self._reference))(depth)
        return f"({base}).{self._name()}" if self._odds(10) else f"{base}.{self._name()}"

    def _list_of(self, depth: int) -> str:
        return self._list(depth, self.expression)

    def _list(self, depth: int, member: Callable[[int], str]) -> str:
        if self._odds(8):
            return self._leaf()
        members = [member(depth - 1) for _ in range(self._chance.randrange(4))]
        return f"{{{self._gap()}{(self._gap() + ',' + self._gap()).join(members)}{self._gap()}}}"

    def _ad(self, depth: int) -> str:
        names = (
            self._pick(words.QUOTED_NAMES) if self._odds(1) else self._name()
            for _ in range(self._chance.randrange(4))
        )
        attributes = [f"{name}{self._gap()}={self.expression(depth - 1)}" for name in names]
        return f"[{self._gap()}{(self._gap() + ';').join(attributes)}{self._pick(('', '', ';', ' '))}]"

    def _ads(self, depth: int) -> str:
        return self._list(depth, self._ad) if self._odds(70) else self._reference(depth)

    def _time(self, depth: int) -> str:
        dice = self._chance.randrange(4)
        if dice == 0:
            return f'absTime("{self._pick(self._times(words.ABSOLUTE, words.NOT_ABSOLUTE))}")'
        if dice == 1:
            return f"absTime({self._pick(words.INTEGERS)},{self._pick(('0', '3600', '-3600', '1800'))})"
        return f"relTime({self._number(depth)})" if dice == 2 else self._pick(words.MOMENTS)

    def _times(self, good: Sequence[str], bad: Sequence[str]) -> Sequence[str]:
        """A literal that is no time makes no expression: most are good."""
        return bad if self._odds(2) else good

    def _split_time(self, depth: int) -> str:
        fields = ("Year", "Month", "Day", "Hours", "Minutes", "Seconds", "Offset", "Type")
        numbers = ("2003", "1", "0", "12", "25", "59", "1.5", '"x"', "-1", "1970", "true", "undefined", "31")
        chosen = [f"{self._pick(fields)}={self._pick(numbers)}" for _ in range(self._chance.randrange(6))]
        return f"[{';'.join(chosen)}]"

    def _call(self, depth: int) -> str:
        return self.call(self._pick(words.FUNCTIONS), depth)

    def call(self, name: str, depth: int) -> str:
        """A call of a function, most often with sensible arguments."""
        kinds, optional, repeated = words.SIGNATURES[name].split(), False, False
        arguments: list[str] = []
        last = "any"
        for kind in kinds:
            if kind == "?":
                optional = True
            elif kind == "*":
                repeated = True
            elif optional and self._odds(40):
                break
            else:
                last = kind
                arguments.append(self._argument(kind, depth))
        while repeated and self._odds(50) and len(arguments) < 6:
            arguments.append(self._argument(last, depth))
        dice = self._chance.randrange(50)
        if dice == 0 and arguments and (name, len(arguments)) not in words.CLOCKS:
            arguments.pop()
        elif dice == 1:
            arguments.append(self._argument(last, depth))
        separator = self._gap() + (";" if self._odds(2) else ",") + self._gap()
        name = self._pick((name.lower(), name.upper())) if self._odds(5) else name
        return f"{name}({separator.join(arguments)})"

    def _argument(self, kind: str, depth: int) -> str:
        return (
            self._kinds[kind](depth)
            if kind in words.PARTICULAR or self._odds(88)
            else self.expression(depth - 1)
        )

    def search(self) -> str:
        """A search for a pattern made at random."""
        pieces = [
            self._pick(words.ASSERTIONS)
            if self._odds(20)
            else self._pick(words.ATOMS) + self._pick(words.REPEATS)
            for _ in range(self._chance.randrange(1, 4))
        ]
        pattern = self._pick(("{}", "{}", "({})", "{}|b", "({})+c?")).format("".join(pieces))
        subject, options = self._pick((*words.STRINGS, *words.SUBJECTS)), self._pick(words.OPTIONS)
        if self._odds(50):
            return f'regexp("{pattern}", "{subject}", "{options}")'
        name, substitution = self._pick(("regexps", "replace", "replaceall")), self._pick(words.SUBSTITUTIONS)
        return f'{name}("{pattern}", "{subject}", "{substitution}", "{options}")'

    def damaged(self, text: str) -> str:
        """`text` with one character too many or too few: close to the syntax, or still within it."""
        at = self._chance.randrange(len(text) + 1)
        if self._odds(50):
            return text[:at] + text[at + 1 :]
        return text[:at] + self._pick(words.NOISE) + text[at:]

    def text(self, depth: int) -> str:
        """An expression; one in thirty is damaged."""
        text = self.expression(depth)
        return self.damaged(text) if self._odds(3) else text

    def ad(self, size: int) -> str:
        """An ad to be matched, whose attributes refer to each other and to the other side."""
        attributes = [f"{self._name()} = {self.expression(2)}" for _ in range(self._chance.randrange(size))]
        return f"[{'; '.join(attributes)}]"
