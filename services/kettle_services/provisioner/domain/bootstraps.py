"""What a machine of an order is told."""

from collections.abc import Iterator

import msgspec

from kettle_wire.bootstrap import Bootstrap, Setting
from kettle_wire.leases import Order, price_of


class Joining(msgspec.Struct, frozen=True):
    """How a machine joins."""

    url: str
    token: str
    deployment: str


def bootstrap_of(order: Order, joining: Joining) -> Bootstrap:
    """The bootstrap of a machine: its slot is what the offer says, because that is what was planned with."""
    offer = order.offer
    settings: dict[str, Setting] = {"num_cpus": offer.cpus, "memory": offer.memory}
    conditions = [f"({each})" for each in (offer.start, order.start) if each]
    if conditions:
        settings["start"] = " && ".join(conditions)
    if order.whole:
        settings["modify_request_expr"] = {"cpus": str(offer.cpus), "memory": str(offer.memory)}
    if offer.administrators:
        settings["administrators"] = offer.administrators
    settings["attributes"] = dict(_attributes(order))
    return Bootstrap(
        url=joining.url,
        token=joining.token,
        lease=order.lease,
        deployment=joining.deployment,
        pool=order.pool,
        life=order.life,
        settings=settings,
        examination=offer.examination,
        notices=offer.notices,
    )


def _attributes(order: Order) -> Iterator[tuple[str, bool | int | float | str]]:
    yield from price_of(order.offer).items()
    for name, expression in {**order.offer.attributes, **order.attributes}.items():
        yield name, literal(expression)


def literal(expression: str) -> bool | int | float | str:
    """
    The value of a ClassAd literal: a number, a string in quotes, true or false.

    Raises:
        ValueError: it is another expression, which a machine cannot be told.
    """
    text = expression.strip()
    try:
        return msgspec.json.decode(
            text.lower() if text.lower() in {"true", "false"} else text, type=bool | int | float | str
        )
    except msgspec.MsgspecError:
        raise ValueError(f"{text} is no number, no string in double quotes, and not true or false") from None
