"""JupyterHub as somebody installs it: with Kettle in its environment, and the proxy that it starts."""

import asyncio
import os
from pathlib import Path
from typing import Final, NamedTuple

from kettle.testing.commands.running import execute

from .client_environments import INSTALLED_WITHIN_S, python_with

TOP: Final = Path(__file__).parents[2]
PACKAGES: Final = (f"{TOP}[embedded,facility]", "notebook>=7", "requests")
PROXY: Final = "configurable-http-proxy"


class HubPrograms(NamedTuple):
    """Where they are."""

    python: str
    proxy: str

    @property
    def path(self) -> str:
        """What PATH is for who runs them."""
        return os.pathsep.join([str(Path(self.proxy).parent), os.environ["PATH"]])


def install(place: Path) -> HubPrograms:
    """It needs package registries and a minute, and therefore an order."""
    return asyncio.run(installed(place))


async def installed(place: Path) -> HubPrograms:
    """What `install` does, in an event loop."""
    python = await python_with(PACKAGES, "jupyterhub", place)
    words = [
        "npm",
        "install",
        "--silent",
        "--no-audit",
        "--no-fund",
        "--prefix",
        str(place / "npm"),
        f"{PROXY}@4",
    ]
    said = await execute(words, place, dict(os.environ), within_s=INSTALLED_WITHIN_S)
    assert 0 == said.status, said
    return HubPrograms(python, str(place / "npm/node_modules/.bin" / PROXY))
