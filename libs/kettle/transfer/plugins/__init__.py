"""
Kettle's own plugins: modules with a `main` that speaks HTCondor's protocol, so that a site's program can take their place.
"""

from collections.abc import Mapping
from typing import Final

from kettle.transfer.plugin import Plugin

MODULES: Final[Mapping[str, str]] = {
    "file": "kettle.transfer.plugins.file",
    "http": "kettle.transfer.plugins.http",
    "https": "kettle.transfer.plugins.http",
}
"""URL scheme -> module."""


def own_plugins(methods: tuple[str, ...]) -> list[Plugin]:
    """
    Those of them that move these schemes.
    """
    modules = dict.fromkeys(MODULES[method] for method in methods)
    return [
        Plugin(path=module, methods=tuple(m for m in methods if MODULES[m] == module), ours=True)
        for module in modules
    ]
