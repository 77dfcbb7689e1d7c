"""What is different between two forms of a pool, and whether anything is."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from kettle.worker_pools.texts import money_text, size_text, span_text
from kettle_wire.worker_pools import Offer, StaticMachine, WorkerPool

_SPANS: Final = frozenset({"boot", "consolidate", "idle", "least_life", "life", "waits"})
_SIZES: Final = frozenset({"disk", "memory"})
_MONEY: Final = frozenset({"budget", "price"})
_NAMED: Final = 5
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


def digest(pool: WorkerPool) -> str:
    """SHA-256 of what a pool says, however its file is written."""
    return hashlib.sha256(_encode(pool)).hexdigest()


def changes(before: WorkerPool | None, after: WorkerPool) -> list[str]:
    """What is different, each in one line; of a new pool all that it says and that is not usual."""
    if before is None:
        return [f"the pool {after.name} is new", *(f"offer {offer.name} is new" for offer in after.offers)]
    found = list(_differences(before, after, ""))
    was = {offer.name: offer for offer in before.offers}
    now = {offer.name: offer for offer in after.offers}
    for name, offer in now.items():
        if name in was:
            found += _differences(was[name], offer, f"offer {name}: ")
        else:
            found.append(f"offer {name} is new")
    found += [f"offer {name} is gone; its machines go on" for name in was if name not in now]
    if not found and [*was] != [*now]:
        found.append("the offers are in another order")
    return found


def _differences(before: msgspec.Struct, after: msgspec.Struct, beginning: str) -> Iterator[str]:
    for name in before.__struct_fields__:
        was, now = getattr(before, name), getattr(after, name)
        if name == "machines":
            yield from (f"{beginning}{said}" for said in _machines(was, now))
        elif name not in {"offers", "currency"} and (was, _currency(before, name)) != (
            now,
            _currency(after, name),
        ):
            yield f"{beginning}{name}: {_shown(before, name, was)} -> {_shown(after, name, now)}"


def _machines(before: Sequence[StaticMachine], after: Sequence[StaticMachine]) -> Iterator[str]:
    """Machines of an offer of a static pool: there may be hundreds."""
    was, now = {each.name: each for each in before}, {each.name: each for each in after}
    for names, said in (
        ([name for name in now if name not in was], "new"),
        ([name for name in was if name not in now], "gone"),
        ([name for name in now if name in was and now[name] != was[name]], "changed"),
    ):
        if names:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            verb = "is" if len(names) == 1 else "are"
            yield f"machines: {', '.join(names[:_NAMED])}{more} {verb} {said}"


def _currency(of: msgspec.Struct, name: str) -> str:
    return of.currency if name in _MONEY and isinstance(of, WorkerPool | Offer) else ""


def _shown(of: msgspec.Struct, name: str, value: object) -> str:
    """A value as a file has it."""
    if name in _SPANS and isinstance(value, float | int):
        return span_text(value)
    if name in _SIZES and isinstance(value, int):
        return size_text(value)
    if name in _MONEY and isinstance(value, float | int):
        return money_text(value, _currency(of, name))
    structured = isinstance(value, dict | list | msgspec.Struct)
    return _encode(value).decode() if structured else str(value) or "nothing"
