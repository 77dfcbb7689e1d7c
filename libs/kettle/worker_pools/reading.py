"""Pool files (TOML) read, with everything that is wrong in one of them found at once."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import EnumMeta
from typing import Any, Final, cast

import msgspec

from kettle.runtime.toml_lines import TomlLines
from kettle.terminal.nearest_names import did_you_mean
from kettle.worker_pools.faults import Fault, PoolFileRefused, ValueRefused
from kettle.worker_pools.rules import offer_faults, pool_faults
from kettle.worker_pools.values import (
    Money,
    attributes,
    condition,
    currency,
    megabytes,
    money,
    name,
    shown,
    span,
)
from kettle_wire.worker_pools import Offer, WorkerPool

Keys = tuple[str, ...]
Reader = Callable[[object], object]

_POOL: Final[Mapping[str, Reader]] = {
    "budget": money,
    "currency": currency,
    "idle": span,
    "least_life": span,
    "life": span,
    "name": name,
    "waits": span,
}
"""How values are read that a file has in a form for people; the others are as they are recorded."""
_OFFER: Final[Mapping[str, Reader]] = {
    "attributes": attributes,
    "boot": span,
    "currency": currency,
    "disk": megabytes,
    "life": span,
    "memory": megabytes,
    "name": name,
    "price": money,
    "provider": name,
    "start": condition,
}
OFFER: Final = "offer"
"""The list of tables in a file: `[[offer]]`."""
_LIKELY: Final = {"cpu": "cpus", "gpu": "gpus", "ram": "memory", "mem": "memory", "flavor": "flavour", "maximum": "max",
                  "minimum": "min", "image": "template", "user": "owners", "users": "owners", "requirements": "start"}  # fmt: skip
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
    if not faults:
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
        try:
            values |= _value(key, value, fields[key].type, readers)
        except ValueRefused as refused:
            wrong((*keys, key), f"{key}: {refused}")
    for key, field in fields.items():
        if field.required and key not in said:
            wrong(keys, f"{place} must have the key '{key}'")
    return values


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
        raise ValueRefused(f"{shown(value)} will not do: {error}".replace("`", "")) from error
    return msgspec.to_builtins(converted)
