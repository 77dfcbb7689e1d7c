"""What a key of a pool file wants, in words, from the type of its value."""

from typing import Any

import msgspec
from msgspec import inspect


def wish(kind: Any) -> str:
    """What a value of a type is, as in `5 is not ...`."""
    return _said(inspect.type_info(kind))


def _said(kind: inspect.Type) -> str:
    match kind:
        case inspect.IntType():
            return f"a whole number{_range(kind)}"
        case inspect.FloatType():
            return f"a number{_range(kind)}"
        case inspect.StrType(max_length=None):
            return "a text"
        case inspect.StrType(max_length=most):
            return f"a text of at most {most} characters in one line"
        case inspect.BoolType():
            return "true or false"
        case inspect.ListType(item_type=item):
            return f"a list in which each is {_said(item)}"
        case inspect.DictType(value_type=value):
            return f"a table in which each value is {_said(value)}"
        case inspect.UnionType(types=types):
            *others, last = [_said(each) for each in types]
            return f"{', '.join(others)} or {last}"
        case _:
            raise msgspec.ValidationError(f"no key of a pool file wants {kind}")


def _range(kind: inspect.IntType | inspect.FloatType) -> str:
    if kind.ge is not None and kind.le is not None:
        return f" from {kind.ge:g} to {kind.le:.12g}"
    least = f"more than {kind.gt:g}" if kind.gt is not None else ""
    least = f"at least {kind.ge:g}" if kind.ge is not None else least
    most = f"less than {kind.lt:g}" if kind.lt is not None else ""
    most = f"at most {kind.le:.12g}" if kind.le is not None else most
    bounds = " and ".join(filter(None, (least, most)))
    return f" of {bounds}" if bounds else ""
