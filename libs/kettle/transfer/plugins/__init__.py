"""
Kettle's own plugins: modules with a `main` that speaks HTCondor's protocol, so that a site's program can replace them.
"""

from collections.abc import Mapping
from typing import Final

from kettle.transfer.plugin import Plugin

MODULES: Final[Mapping[str, str]] = {
    "dav": "kettle.transfer.plugins.webdav",
    "davs": "kettle.transfer.plugins.webdav",
    "file": "kettle.transfer.plugins.file",
    "gs": "kettle.transfer.plugins.http",
    "http": "kettle.transfer.plugins.http",
    "https": "kettle.transfer.plugins.http",
    "root": "kettle.transfer.plugins.xroot",
    "roots": "kettle.transfer.plugins.xroot",
    "s3": "kettle.transfer.plugins.http",
    "xroot": "kettle.transfer.plugins.xroot",
    "xroots": "kettle.transfer.plugins.xroot",
}
"""
URL scheme -> module; of `s3` and `gs` it gets what the submit side has signed, which is an address of the web.
"""


def own_plugins(methods: tuple[str, ...]) -> list[Plugin]:
    """Kettle's own plugins that move these schemes."""
    modules = dict.fromkeys(MODULES[method] for method in methods)
    return [
        Plugin(path=module, methods=tuple(m for m in methods if MODULES[m] == module), ours=True)
        for module in modules
    ]
