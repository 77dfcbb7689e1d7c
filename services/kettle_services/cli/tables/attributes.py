"""Ads as they are: chosen attributes of each in a line, or all of them."""

from collections.abc import Iterable, Sequence
from typing import cast

from kettle.classad.listing import LONG
from kettle_services.cli.output.screen import Cell, Screen
from kettle_wire.ads.types import Ad, Expr


def show_attributes(ads: Sequence[Ad], names: Sequence[str], screen: Screen) -> None:
    """A column for each attribute, one ad per line."""
    columns = [_cells(ads, name) for name in names]
    screen.table(names, list(zip(*columns, strict=True)))


def chosen(ad: Ad, names: Sequence[str]) -> Ad:
    """Of an ad these attributes, as far as it has them; all if none is named."""
    keys = {name.lower() for name in names}
    return {name: value for name, value in ad.items() if not keys or name.lower() in keys}


def show_long(ads: Iterable[Ad], screen: Screen) -> None:
    """Whole ads, each followed by an empty line."""
    for ad in ads:
        screen.block(LONG.members(ad))


def _cells(ads: Sequence[Ad], name: str) -> Sequence[Cell]:
    values = [ad.get(name) for ad in ads]
    if {int, str}.issuperset(map(type, values)):
        return cast("list[int | str]", values)
    return [_cell(ad, name) for ad in ads]


def _cell(ad: Ad, name: str) -> str:
    value = ad.get(name)
    if value is None:
        value = next((value for key, value in ad.items() if key.lower() == name.lower()), None)
    match value:
        case None:
            return "undefined"
        case Expr(expr=text):
            return text
        case bool():
            return str(value).lower()
        case _:
            return str(value)
