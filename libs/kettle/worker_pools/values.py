"""
Values of pool files in the forms that people write: times as "10m", sizes as "16 GB", money as "0.05 EUR".
"""

import json
import re
from collections.abc import Mapping
from typing import Final, cast

import msgspec

from kettle.submit.units import amount
from kettle.terminal.nearest_names import did_you_mean
from kettle.worker_pools.faults import ValueRefused
from kettle_wire.worker_pools import StaticMachine

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SPAN: Final = re.compile(r"(?:\d+(?:\.\d+)?\s*[smhdw]\s*)+")
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")
_MONEY: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]{3})")
_CURRENCY: Final = re.compile(r"[A-Z]{3}")
_NAME: Final = re.compile(r"[a-z][a-z0-9-]*")
_ATTRIBUTE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}")


class Money(msgspec.Struct, frozen=True):
    """An amount; `currency` is empty if only a number was given."""

    amount: float
    currency: str


def span(value: object) -> float:
    """Seconds of "10m", "2h30m", or of a number of them."""
    if is_number(value):
        return float(value)  # type: ignore[arg-type]  # as it was asked
    if isinstance(value, str) and _SPAN.fullmatch(value.strip()):
        return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(value))
    raise ValueRefused(f'{shown(value)} is no time: write seconds, or "90s", "10m", "2h30m", "7d"')


def megabytes(value: object) -> int:
    """MB of "16 GB", or of a whole number of them."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = amount(value, unit="M") if isinstance(value, str) else None
    if found is None:
        raise ValueRefused(f'{shown(value)} is no size: write MB, or "512 MB", "16 GB", "1.5 TB"')
    return found


def money(value: object) -> Money:
    """An amount with its currency, if it has one."""
    if is_number(value):
        return Money(float(value), "")  # type: ignore[arg-type]  # as it was asked
    if isinstance(value, str) and (match := _MONEY.fullmatch(value.strip())):
        return Money(float(match[1]), currency(match[2]))
    raise ValueRefused(f'{shown(value)} is no amount of money: write it with its currency, as "0.05 EUR"')


def currency(value: object) -> str:
    """Three capital letters."""
    if isinstance(value, str) and _CURRENCY.fullmatch(value):
        return value
    raise ValueRefused(f"{shown(value)} is no currency: write its code of three capital letters, as EUR")


def name(value: object) -> str:
    """What becomes part of names of machines."""
    if isinstance(value, str) and len(value) <= 32 and _NAME.fullmatch(value):
        return value
    raise ValueRefused(
        f"{shown(value)} is no name: it has small letters, digits and -, begins with a letter, and is no longer than 32"
    )


def machines(value: object) -> list[dict[str, str]]:
    """The machines of a static pool, each with its name, and what wakes it."""
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in cast("list[object]", value)):
        raise ValueRefused('machines is a list of tables, as [{ name = "desk1", mac = "52:54:00:12:34:56" }]')
    found: list[dict[str, str]] = []
    known = [field.name for field in msgspec.structs.fields(StaticMachine)]
    for each in cast("list[dict[str, object]]", value):
        for key, said in each.items():
            if key not in known:
                raise ValueRefused(f"a machine has no key '{key}'{did_you_mean(key, known)}")
            if not isinstance(said, str):
                raise ValueRefused(f"{key} of a machine is a text, and {shown(said)} is none")
        if not each.get("name"):
            raise ValueRefused("a machine has a name: that of its startd in the pool")
        found.append({key: str(said) for key, said in each.items()} | _mac(each))
        try:
            msgspec.convert(found[-1], StaticMachine)
        except msgspec.ValidationError as error:
            key = str(error).rpartition("$.")[2].rstrip("`")
            raise ValueRefused(f"{shown(each.get(key))} cannot be the {key} of a machine") from None
    return found


def _mac(machine: Mapping[str, object]) -> dict[str, str]:
    """The hardware address in one form, however it is written."""
    if not (mac := str(machine.get("mac", ""))):
        return {}
    digits = re.sub(r"[:.-]", "", mac).lower()
    if not re.fullmatch(r"[0-9a-f]{12}", digits):
        raise ValueRefused(
            f"{shown(mac)} is no hardware address: write six pairs of hexadecimal digits, as 52:54:00:12:34:56"
        )
    return {"mac": ":".join(digits[place : place + 2] for place in range(0, 12, 2))}


def attributes(value: object) -> dict[str, str]:
    """
    Attributes of an ad with their values as expressions: a text is a text, a number a number, true is true.
    """
    if not isinstance(value, dict):
        raise ValueRefused('attributes is a table, as { Site = "north", HasFastDisk = true }')
    return {
        _attribute(each): _literal(each, one) for each, one in cast("Mapping[str, object]", value).items()
    }


def _attribute(text: str) -> str:
    if not _ATTRIBUTE.fullmatch(text):
        raise ValueRefused(
            f"'{text}' cannot be an attribute: it has letters, digits and _, and begins with no digit"
        )
    return text


def _literal(attribute: str, value: object) -> str:
    from kettle.classad.printing import quoted_string

    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return quoted_string(value)
        case _:
            raise ValueRefused(
                f"{attribute} is {shown(value)}: an attribute is a text, a number, true or false"
            )


def condition(value: object) -> str:
    """A ClassAd expression that is true or not."""
    from kettle.runtime.expression_types import Expression, complaint

    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        raise ValueRefused(f"{shown(value)} is no expression: write it as a text")
    if value.strip() and (wrong := complaint(Expression((), "condition", value))):
        raise ValueRefused(wrong)
    return value.strip()


def is_number(value: object) -> bool:
    """Whether a value of a file is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def shown(value: object) -> str:
    """A value in a sentence."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:60]}..."
