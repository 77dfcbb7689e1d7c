"""Parameters of pages as those of the questions that they ask."""

from typing import Any, TypeVar

import msgspec

Parameters = TypeVar("Parameters", bound=msgspec.Struct)


def narrowed(asked: msgspec.Struct, kind: type[Parameters], **given: Any) -> Parameters:
    """The parameters of a question: what the page's own have of them, and what is given."""
    names = set(kind.__struct_fields__) & set(asked.__struct_fields__)
    return kind(**{name: getattr(asked, name) for name in names} | given)
