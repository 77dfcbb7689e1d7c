"""
Makes `docs/reference/attributes.md`: what is in the ads of a pool.

`docs/generate.py` writes the page; by itself this module only makes its text.
"""

from pathlib import Path
from typing import Final

import msgspec

from kettle.schema_generation.markdown import table

TOP: Final = Path(__file__).parents[1]


class AttributesOf(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of one type of ad: type, unit, meaning by name, and who sets it if that is not `by`."""

    title: str
    about: str
    by: str
    attributes: dict[str, list[str]]


def attributes() -> dict[str, AttributesOf]:
    """Type of ad -> its attributes, from `schemas/kettle_wire/ads/attributes.toml`."""
    return msgspec.toml.decode(
        (TOP / "schemas/kettle_wire/ads/attributes.toml").read_bytes(), type=dict[str, AttributesOf]
    )


def attributes_page() -> str:
    """The reference of attributes."""
    made = """# Attributes

What is in the [ads](classad.md) of a pool, and who says so; `kettle status --ads TYPE` and `kettle q` show them.
A name is the same name however it is capitalised.
What an administrator or a submitter adds is not here.
Where the type is "expression", the value may be a plain one too; a list is an expression with a list or a record as its value.
"""
    titles = ("attribute", "type", "unit", "meaning", "set by")
    for kind in attributes().values():
        rows = [
            tuple([f"`{name}`", *about, kind.by][:5])
            for name, about in sorted(kind.attributes.items(), key=lambda each: each[0].lower())
        ]
        made += f"\n## {kind.title}\n\n{kind.about}\n" + (f"\n{table(titles, rows)}" if rows else "")
    return made
