"""Every command that there is, found in the modules beside this one: a new one needs no second entry."""

import importlib
import pkgutil
from typing import Any, Final, TypeGuard

from kettle_wire import commands
from kettle_wire.endpoint import Caller, Endpoint


def _is_endpoint(value: object) -> TypeGuard[Endpoint[Any, Any]]:
    return isinstance(value, Endpoint)


def _declared() -> tuple[Endpoint[Any, Any], ...]:
    found: dict[Endpoint[Any, Any], None] = {}
    for name in sorted(info.name for info in pkgutil.iter_modules(commands.__path__)):
        if f"{commands.__name__}.{name}" == __name__:
            continue
        module = importlib.import_module(f"{commands.__name__}.{name}")
        for value in vars(module).values():
            if _is_endpoint(value):
                found[value] = None
    return tuple(found)


ENDPOINTS: Final = _declared()
"""In the order of their modules' names, and of their declaration within."""


def open_to(*callers: Caller) -> tuple[Endpoint[Any, Any], ...]:
    """The endpoints that are for any of these callers."""
    return tuple(endpoint for endpoint in ENDPOINTS if not endpoint.callers.isdisjoint(callers))
