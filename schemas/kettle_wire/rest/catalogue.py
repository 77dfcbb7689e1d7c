"""Every route that there is, found in the modules beside this one."""

import importlib
import pkgutil
from typing import Final

from kettle_wire import rest
from kettle_wire.rest.route import Route


def _declared() -> tuple[Route, ...]:
    found: list[Route] = []
    for name in sorted(info.name for info in pkgutil.iter_modules(rest.__path__)):
        if f"{rest.__name__}.{name}" != __name__:
            module = importlib.import_module(f"{rest.__name__}.{name}")
            found += [value for value in vars(module).values() if isinstance(value, Route)]
    return tuple(sorted(found, key=lambda route: (route.path, route.method)))


ROUTES: Final = _declared()
"""In the order of their paths."""
