"""Types of settings that say more than their values: what is never shown, and what a number counts."""

import re
from typing import Annotated, Any, Final, TypeVar, get_args, get_origin

import msgspec

_HIDDEN: Final = "kettle:hidden"
_UNIT: Final = "kettle:unit"
FOREVER: Final = 1e12
"""Seconds that nobody waits; infinity would be no time to calculate with."""

T = TypeVar("T")
Hidden = Annotated[T, msgspec.Meta(extra={_HIDDEN: True})]
"""A value that is never shown."""
Secret = Hidden[str]
"""A string that is never shown; of a URL only the password is hidden."""

Seconds = Annotated[float, msgspec.Meta(gt=0, le=FOREVER, extra={_UNIT: "s"})]
"""A time that has to pass."""
Pause = Annotated[float, msgspec.Meta(ge=0, le=FOREVER, extra={_UNIT: "s"})]
"""A time that may be none at all."""
MiB = Annotated[int, msgspec.Meta(ge=0, extra={_UNIT: "MiB"})]
KiB = Annotated[int, msgspec.Meta(ge=0, extra={_UNIT: "KiB"})]
Bytes = Annotated[int, msgspec.Meta(ge=0, extra={_UNIT: "bytes"})]

_AMOUNT: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([A-Za-z]+)\s*")
_TIMES: Final = {
    "s": 1, "sec": 1, "second": 1, "seconds": 1, "ms": 0.001, "m": 60, "min": 60, "minute": 60, "minutes": 60,
    "h": 3600, "hour": 3600, "hours": 3600, "d": 86400, "day": 86400, "days": 86400,
}  # fmt: skip
_SIZES: Final = {
    f"{letter}{rest}": 1024**power for power, letter in enumerate("kmgt", 1) for rest in ("", "b", "ib")
} | {"b": 1, "bytes": 1}
_COUNTED: Final = {"MiB": 1024**2, "KiB": 1024, "bytes": 1}
_URL_PASSWORD: Final = re.compile(r"(?<=://)([^/@:\s]*):[^/@\s]*(?=@)")


def redact(text: str) -> str:
    """Hide the passwords of the URLs in a text."""
    return _URL_PASSWORD.sub(r"\1:***", text) if "://" in text else text


def shown(kind: Any, value: object) -> object:
    """A value as it may be shown to those who read logs."""
    if not value or not _extra(kind, _HIDDEN):
        return value
    return redact(value) if isinstance(value, str) and "://" in value else "***"


def is_hidden(kind: Any) -> bool:
    """Whether a setting is a secret, as a whole or in a part."""
    return bool(_extra(kind, _HIDDEN))


def unit_of(kind: Any) -> str:
    """What a number counts; empty if its type does not say."""
    return str(_extra(kind, _UNIT) or "")


def without_unit(kind: Any, value: object) -> str:
    """
    What to write instead of an amount with a unit, as the end of a sentence; empty if the value is none.
    """
    found = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    plain = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if found is None or plain not in {int, float}:
        return ""
    unit, said = unit_of(kind), found[2].lower()
    factor = _TIMES.get(said) if unit == "s" else _SIZES.get(said)
    if not unit or factor is None:
        return "; write the number alone, without a unit"
    amount = float(found[1]) * factor / _COUNTED.get(unit, 1)
    return f"; it counts {'seconds' if unit == 's' else unit}, so write {amount:.15g}"


def _extra(kind: Any, name: str) -> object:
    if get_origin(kind) is not Annotated:
        return None
    found = [
        meta.extra.get(name) for meta in get_args(kind)[1:] if isinstance(meta, msgspec.Meta) and meta.extra
    ]
    return next((each for each in found if each is not None), None)
