"""Pool files (TOML) read, with everything that is wrong in one of them found at once."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import EnumMeta
from typing import Any, Final, cast

import msgspec

from kettle.runtime.toml_lines import TomlLines
from kettle.terminal.nearest_names import did_you_mean
from kettle.worker_pools.faults import Fault, PoolFileRefused, ValueRefused
from kettle.worker_pools.rules import count_faults, offer_faults, pool_faults
from kettle.worker_pools.values import (
    Money,
    attributes,
    condition,
    currency,
    machines,
    megabytes,
    money,
    name,
    shown,
    span,
)
from kettle.worker_pools.wishes import wish
from kettle_wire.examination import Examination, Notices
from kettle_wire.worker_pools import Offer, WorkerPool

Keys = tuple[str, ...]
Reader = Callable[[object], object]

_POOL: Final[Mapping[str, Reader]] = {
    "budget": money,
    "currency": currency,
    "idle": span,
    "least_life": span,
    "consolidate": span,
    "life": span,
    "name": name,
    "waits": span,
}
"""How values are read that a file has in a form for people; the others are as they are recorded."""
_EXAMINATION: Final[Mapping[str, Reader]] = {"disk": megabytes, "script_timeout": span, "skew": span}
_NOTICES: Final[Mapping[str, Reader]] = {"interval": span, "warning": span}
_TABLES: Final[Mapping[type[msgspec.Struct], tuple[str, Mapping[str, Reader]]]] = {
    Examination: ("an examination", _EXAMINATION),
    Notices: ("notices", _NOTICES),
}
"""What is a table within an offer: what it is called in a refusal, and how its values are read."""
_OFFER: Final[Mapping[str, Reader]] = {
    "attributes": attributes,
    "boot": span,
    "currency": currency,
    "disk": megabytes,
    "life": span,
    "machines": machines,
    "memory": megabytes,
    "name": name,
    "price": money,
    "provider": name,
    "start": condition,
}
OFFER: Final = "offer"
"""The list of tables in a file: `[[offer]]`."""
_LIKELY: Final = {"cpu": "cpus", "gpu": "gpus", "ram": "memory", "mem": "memory", "flavor": "flavour", "maximum": "max",
                  "minimum": "min", "image": "template", "user": "owners", "users": "owners", "requirements": "start",
                  "machine": "machines", "host": "machines", "hosts": "machines"}  # fmt: skip
"""What else people call a key."""


def read_pool(text: str, path: str) -> WorkerPool:
    """
    The pool of a file; `path` is what refusals call it.

    Raises:
        PoolFileRefused: it is no TOML, or no pool.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PoolFileRefused([Fault(path, f"it is no TOML: {error}")]) from error
    lines = TomlLines(text)

    def where(keys: Sequence[str]) -> str:
        line = lines.line_of(keys)
        return f"{path}:{line}" if line else path

    return pool_of(tables, where)


def pool_of(tables: Mapping[str, object], where: Callable[[Sequence[str]], str]) -> WorkerPool:
    """
    The pool that the keys of a file say, from wherever they come; `where` says the place of a key.

    Raises:
        PoolFileRefused: it is none.
    """
    faults: list[Fault] = []

    def wrong(keys: Sequence[str], sentence: str) -> None:
        faults.append(Fault(where(keys), sentence))

    said = {key: value for key, value in tables.items() if key != OFFER}
    values = _read(said, WorkerPool, _POOL, (), wrong, others=(OFFER,), place="a pool")
    offers = list(_offers(tables.get(OFFER), values, wrong))
    if faults:
        counts = {key: values[key] for key in ("min", "spare", "max") if key in values}
        for key, sentence in count_faults(**counts):
            wrong((key,), sentence)
        raise PoolFileRefused(faults)
    pool = msgspec.convert({**values, "offers": offers}, WorkerPool)
    for keys, sentence in pool_faults(pool):
        wrong(keys, sentence)
    if not faults:
        return pool
    raise PoolFileRefused(faults)


def _offers(
    found: object, pool: Mapping[str, object], wrong: Callable[[Sequence[str], str], None]
) -> Iterator[Offer]:
    """The offers that can be read."""
    tables = cast("list[object]", found) if isinstance(found, list) else []
    if not tables or not all(isinstance(one, dict) for one in tables):
        wrong((OFFER,), "a pool has at least one table [[offer]], which says what a provider makes")
        return
    for number, table in enumerate(cast("list[dict[str, object]]", tables)):
        keys = (OFFER, str(number))
        said = {"currency": pool["currency"], **table} if "price" in table and "currency" in pool else table
        before: list[str] = []

        def wrong_here(keys: Sequence[str], sentence: str, told: list[str] = before) -> None:
            told.append(sentence)
            wrong(keys, sentence)

        values = _read(said, Offer, _OFFER, keys, wrong_here, place="an offer")
        if not before:
            offer = msgspec.convert(values, Offer)
            for key, sentence in offer_faults(offer):
                wrong((*keys, key), sentence)
            yield offer


def _read(
    said: Mapping[str, object],
    kind: type[msgspec.Struct],
    readers: Mapping[str, Reader],
    keys: Keys,
    wrong: Callable[[Sequence[str], str], None],
    *,
    place: str,
    others: Sequence[str] = (),
) -> dict[str, Any]:
    """The values of a table as they are recorded; what is wrong with each is told."""
    fields = {field.name: field for field in msgspec.structs.fields(kind) if field.name != "offers"}
    values: dict[str, Any] = {}
    for key, value in said.items():
        if key not in fields:
            meant = _LIKELY.get(key.lower(), "")
            near = f"; did you mean {meant}?" if meant in fields else did_you_mean(key, [*fields, *others])
            wrong((*keys, key), f"{place} has no key '{key}'{near}")
            continue
        if (kind_of := fields[key].type) in _TABLES:
            values[key] = _table(kind_of, value, (*keys, key), wrong)
            continue
        try:
            values |= _value(key, value, kind_of, readers)
        except ValueRefused as refused:
            wrong((*keys, key), f"{key}: {refused}")
    for key, field in fields.items():
        if field.required and key not in said:
            wrong(keys, f"{place} must have the key '{key}'")
    return values


def _table(
    kind: type[msgspec.Struct], value: object, keys: Keys, wrong: Callable[[Sequence[str], str], None]
) -> dict[str, Any]:
    """The values of a table within a table."""
    place, readers = _TABLES[kind]
    if isinstance(value, dict):
        return _read(cast("Mapping[str, object]", value), kind, readers, keys, wrong, place=place)
    wrong(keys, f"{keys[-1]}: {shown(value)} is no table: write [{OFFER}.{keys[-1]}] above its keys")
    return {}


def _value(key: str, value: object, kind: Any, readers: Mapping[str, Reader]) -> dict[str, object]:
    """What a key says, as it is recorded; raises ValueRefused."""
    found = readers[key](value) if key in readers else value
    if isinstance(found, Money):
        amount = _converted(found.amount, kind)
        return {key: amount, "currency": found.currency} if found.currency else {key: amount}
    return {key: _converted(found, kind)}


def _converted(value: object, kind: Any) -> object:
    """A value of a type, enumerations as their words."""
    try:
        converted = msgspec.convert(value, kind, strict=True)
    except msgspec.ValidationError as error:
        if isinstance(kind, EnumMeta):
            known = [str(one) for one in cast("Any", kind)]
            near = did_you_mean(str(value), known)
            raise ValueRefused(f"{shown(value)} is none of {', '.join(known)}{near}") from error
        raise ValueRefused(f"{shown(value)} is not {wish(kind)}") from error
    return msgspec.to_builtins(converted)
