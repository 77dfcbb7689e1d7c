"""The function macros: `$ENV(HOME)`, `$Fn(file)`, `$INT(expression)`, ..."""

from __future__ import annotations

import math
import posixpath
import re
from typing import TYPE_CHECKING, Final, Protocol

from kettle.classad import (
    ClassAdError,
    ClassAdParseError,
    Context,
    Exceptional,
    Value,
    parse,
    unparse,
)
from kettle.submit.errors import MacroError

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping


class Macros(Protocol):
    """What a function macro may ask of the expansion that it is part of."""

    @property
    def environ(self) -> Mapping[str, str]:
        """The submitter's environment."""
        ...

    @property
    def context(self) -> Context:
        """What expressions may see, and how much work they may be."""
        ...

    def value(self, name: str) -> str | None:
        """The value of a macro; None if there is none of this name."""
        ...

    def expand(self, text: str) -> str:
        """Replace the macros of a text."""
        ...

    def resolve(self, argument: str) -> str:
        """The value of the macro of that name, else the expanded text."""
        ...

    def draw(self) -> random.Random:
        """Where random numbers come from."""
        ...

    def directory(self) -> str:
        """Where relative paths start."""
        ...


_PATH_FUNCTION: Final = re.compile(r"F[fpduwnxbqa]*")
_CONVERSION: Final = re.compile(r"[^%]*%[-+ 0#]*\d{0,3}(?:\.\d{1,3})?([diouxXeEfFgGs])[^%]*")
"""At most 999 wide: what is formatted may be somebody else's."""


def is_path_function(name: str) -> bool:
    """Whether `$name(...)` takes a path apart."""
    return _PATH_FUNCTION.fullmatch(name) is not None


def path_parts(function: str, path: str, *, directory: str = "") -> str:
    """
    The parts of a path that the letters after `F` ask for; quotes around the path are no part of it.

    `f` makes it start at `directory`, and leaves its `..` as they are.
    """
    letters = function[1:]
    if len(path) > 1 and path[0] == path[-1] and path[0] in "\"'":
        path = path[1:-1]
    if "f" in letters:
        path = posixpath.join(directory, path)
    directory, _, name = path.rpartition("/")
    stem, extension = posixpath.splitext(name)
    if not set(letters) & set("pdnx"):
        text = path
    else:
        folder = _folder(letters, directory, slash="/" in path)
        text = folder + (stem if "n" in letters else "")
        text += (
            extension.removeprefix(".") if "x" in letters and "b" in letters else extension * ("x" in letters)
        )
        if "b" in letters and "x" not in letters:
            text = text.removesuffix("/")
    text = text.replace("/", "\\") if "w" in letters else text
    quote = "" if "q" not in letters else ("'" if "a" in letters else '"')
    return f"{quote}{text}{quote}"


def _folder(letters: str, directory: str, *, slash: bool) -> str:
    if "p" in letters:
        return f"{directory}/" if slash else ""
    depth = letters.count("d")
    if not depth or not slash:
        return ""
    parts = directory.split("/")
    return "".join(f"{part}/" for part in parts[-depth:])


def _environment(argument: str, macros: Macros) -> str:
    name, colon, default = argument.partition(":")
    return macros.environ.get(name.strip(), macros.expand(default) if colon else "UNDEFINED")


def _choice(argument: str, macros: Macros) -> str:
    first, *others = (part.strip() for part in argument.split(","))
    choices = _listed(others[0], macros, separators=",") if len(others) == 1 else others
    index = _number(macros.resolve(first), f"$CHOICE({argument})", macros)
    if not 0 <= index < len(choices):
        raise MacroError(f"$CHOICE({argument}): there is no choice number {index} among {len(choices)}")
    chosen = choices[int(index)]
    return chosen if len(others) == 1 else macros.expand(chosen)


def _random_choice(argument: str, macros: Macros) -> str:
    choices = [part.strip() for part in argument.split(",")]
    if len(choices) == 1:
        return macros.draw().choice(_listed(choices[0], macros) or [""])
    return macros.expand(macros.draw().choice(choices))


def _listed(name: str, macros: Macros, *, separators: str = r"\s,") -> list[str]:
    """
    The words that a macro comes to; they are expanded already, and a value must not be taken for a text.
    """
    parts = (part.strip() for part in re.split(f"[{separators}]+", macros.resolve(name)))
    return [part for part in parts if part]


def _random_integer(argument: str, macros: Macros) -> str:
    numbers = [
        int(_number(macros.resolve(part), f"$RANDOM_INTEGER({argument})", macros))
        for part in argument.split(",")
    ]
    if len(numbers) not in {2, 3} or numbers[0] > numbers[1] or (len(numbers) == 3 and numbers[2] <= 0):
        raise MacroError(
            f"$RANDOM_INTEGER({argument}): expected the smallest, the greatest and perhaps a step"
        )
    low, high, step = (*numbers, 1)[:3]
    return str(macros.draw().randrange(low, high + 1, step))


def _substring(argument: str, macros: Macros) -> str:
    name, *bounds = argument.split(",")
    text = macros.value(name.strip()) or ""
    limits = [int(_number(macros.resolve(bound), f"$SUBSTR({argument})", macros)) for bound in bounds]
    if len(limits) not in {1, 2}:
        raise MacroError(f"$SUBSTR({argument}): expected a macro, a start and perhaps a length")
    start = limits[0] if limits[0] >= 0 else max(len(text) + limits[0], 0)
    if len(limits) == 1:
        return text[start:]
    return text[start : start + limits[1]] if limits[1] >= 0 else text[start : limits[1]]


def _directory(argument: str, macros: Macros) -> str:
    return path_parts("Fp", macros.resolve(argument))


def _base_name(argument: str, macros: Macros) -> str:
    name, _, suffix = argument.partition(",")
    return path_parts("Fnx", macros.resolve(name)).removesuffix(suffix.strip() or "\0")


def _integer(argument: str, macros: Macros) -> str:
    name, comma, wanted = argument.partition(",")
    value = _number(macros.resolve(name), f"$INT({argument})", macros)
    return _formatted(wanted if comma else "%d", int(value))


def _real(argument: str, macros: Macros) -> str:
    name, comma, wanted = argument.partition(",")
    value = float(_number(macros.resolve(name), f"$REAL({argument})", macros))
    if not comma:
        return f"{value:.16G}"
    text = _formatted(wanted, value)
    return text if "." in text else f"{text}.0"


def _string(argument: str, macros: Macros) -> str:
    name, comma, wanted = argument.partition(",")
    text = macros.resolve(name)
    try:
        value = _value(text, macros)
    except MacroError:
        value = text
    return _formatted(wanted if comma else "%s", value if isinstance(value, str) else text)


def _evaluated(argument: str, macros: Macros) -> str:
    text = macros.resolve(argument)
    value = _value(text, macros) if text else Exceptional.UNDEFINED
    return value if isinstance(value, str) else unparse(value)


def _value(text: str, macros: Macros) -> Value:
    from kettle.classad import evaluate  # much to load for what few descriptions say

    try:
        return evaluate(parse(text), context=macros.context)
    except ClassAdParseError as error:
        raise MacroError(f"'{text}' is not an expression: {error.sentence}") from error
    except ClassAdError as error:
        raise MacroError(f"'{text}' has no value: {error}") from error


def _number(text: str, what: str, macros: Macros) -> int | float:
    value = _value(text, macros)
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise MacroError(f"{what}: '{text}' is not a number")
    return value


def _formatted(wanted: str, value: float | str) -> str:
    match = _CONVERSION.fullmatch(wanted)
    if match is None or (match[1] != "s" and isinstance(value, str)):
        raise MacroError(
            f"'{wanted}' is not a format for one {'text' if isinstance(value, str) else 'number'}"
        )
    if match[1] in "diouxX" and isinstance(value, float):
        value = int(value)
    return wanted % value


FUNCTIONS: Final[Mapping[str, Callable[[str, Macros], str]]] = {
    "BASENAME": _base_name,
    "CHOICE": _choice,
    "DIRNAME": _directory,
    "ENV": _environment,
    "EVAL": _evaluated,
    "INT": _integer,
    "RANDOM_CHOICE": _random_choice,
    "RANDOM_INTEGER": _random_integer,
    "REAL": _real,
    "STRING": _string,
    "SUBSTR": _substring,
}
