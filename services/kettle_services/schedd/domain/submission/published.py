"""Whether what jobs say of the services that they publish can be recorded."""

from collections.abc import Callable, Iterable
from typing import Final

from kettle.published import services, sharing
from kettle.published.services import ServiceError
from kettle_wire.ads import Scalar

_READERS: Final[dict[str, Callable[[str], object]]] = {
    services.ATTRIBUTE.lower(): services.parse_services,
    sharing.ATTRIBUTE.lower(): sharing.parse_sharing,
}
ATTRIBUTES: Final = frozenset(_READERS)
"""In small letters."""


def trouble(name: str, values: Iterable[Scalar]) -> str:
    """What is wrong with values of one of these attributes, in one sentence; empty: nothing."""
    read = _READERS[name.lower()]
    for value in values:
        if not isinstance(value, str):
            return f"{name} is a text, as in web:8080/http, and no expression"
        try:
            read(value)
        except ServiceError as error:
            return str(error)
    return ""
