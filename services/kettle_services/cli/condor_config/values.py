"""A knob's text as the value of a setting, by the type of the setting."""

import re
from collections.abc import Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from kettle.classad import ClassAdError, evaluate, parse
from kettle.pool.personal_settings import Value

_FALSE: Final = frozenset({"false", "f", "no", "n", "0"})
_TRUE: Final = frozenset({"true", "t", "yes", "y", "1"})


class NoValueError(ValueError):
    """The text is no value for the setting; the message says why."""


def value_of(kind: Any, text: str) -> Value:
    """
    What a setting of a type gets.

    Raises:
        NoValueError: the text is nothing of that type.
    """
    bare = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    options = get_args(bare) if get_origin(bare) in {Union, UnionType} else (bare,)
    if str in options:
        return text
    plain = next(each for each in options if each is not NoneType)
    origin = get_origin(plain)
    if origin in {tuple, list}:
        return words(text)
    if plain is bool:
        return truth(text)
    if plain in {int, float}:
        return number(text, whole=plain is int)
    return text


def words(text: str) -> list[str]:
    """A list as HTCondor writes it: with commas, blanks or both."""
    return [word for word in re.split(r"[\s,]+", text) if word]


def truth(text: str) -> bool:
    """A truth value, or an expression that is always one."""
    said = text.strip().lower()
    if said in _FALSE | _TRUE:
        return said in _TRUE
    value = constant(text)
    if not isinstance(value, bool | int | float):
        raise NoValueError(f"'{text}' is neither true nor false")
    return bool(value)


def number(text: str, *, whole: bool) -> int | float:
    """A number, or an expression that is always the same one, such as `10 * 60`."""
    value = constant(text)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NoValueError(f"'{text}' is not a number")
    if whole:
        return int(value)
    return float(value)


def constant(text: str) -> object:
    """The value of an expression that depends on nothing."""
    try:
        return evaluate(parse(text))
    except ClassAdError as error:
        raise NoValueError(f"'{text}' is no expression: {error}") from error


def command_line(text: str) -> Sequence[str]:
    """A program with its arguments."""
    return text.split()
