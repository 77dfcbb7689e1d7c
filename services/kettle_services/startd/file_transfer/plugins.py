"""
The plugins of this machine: at the start each program is asked what it moves; the answers are passed to starters, and
advertised.
"""

import asyncio
import logging
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from kettle.bus.encryption import is_wanted
from kettle.runtime import SettingsError
from kettle.transfer.plugin import Plugin
from kettle.transfer.plugin_protocol import ProtocolError, capabilities
from kettle.transfer.plugins import own_plugins, xroot
from kettle_services.startd.settings import StartdSettings
from kettle_wire.ads import Ad

_log: Final = logging.getLogger(__name__)
_WITHIN_S: Final = 20.0
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


async def find_plugins(settings: StartdSettings) -> list[Plugin]:
    """
    The programs of the machine's owner that work, then ours: of two for one method the first counts.

    Raises:
        SettingsError: a path is relative, and means something else from each directory.
    """
    for path in settings.transfer_plugins:
        if not Path(path).is_absolute():
            raise SettingsError(f"KETTLE_STARTD_TRANSFER_PLUGINS: {path} must be an absolute path.")
    asked = await asyncio.gather(*(_ask(path) for path in settings.transfer_plugins))
    own = own_plugins(settings.transfer_methods)
    if any(plugin.path == xroot.__name__ for plugin in own) and (
        cause := await asyncio.to_thread(xroot.lacks)
    ):
        _log.info("no root:// URLs on this machine", extra={"cause": cause})
        own = [plugin for plugin in own if plugin.path != xroot.__name__]
    return [*(plugin for plugin in asked if plugin is not None), *own]


def plugin_attributes(plugins: list[Plugin], *, bus: str, ca: str = "") -> Ad:
    """
    What a machine with these plugins advertises; `bus` is the address by which all other files come, and `ca` says
    who it is trusted by.

    A job may insist on encryption file by file; a connection is encrypted for all of them or for none.
    """
    methods = dict.fromkeys(method for plugin in plugins for method in plugin.methods)
    return {
        "HasFileTransferPluginMethods": ",".join(methods),
        "HasPerFileEncryption": is_wanted(bus, ca) or all(_private(url.strip()) for url in bus.split(",")),
    }


def _private(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in {"tls", "wss"} or parts.hostname in _LOOPBACK


async def _ask(path: str) -> Plugin | None:
    """A plugin as it describes itself.  One that does not is left out: the machine is good for other jobs."""
    try:
        return capabilities(path, await _said(path))
    except TimeoutError:
        cause = f"it did not say within {_WITHIN_S:g} seconds what it can"
    except OSError as error:
        cause = f"it cannot be run: {error.strerror}"
    except ProtocolError as error:
        cause = str(error)
    _log.warning("not used as a file-transfer plugin: %s", path, extra={"cause": cause})
    return None


async def _said(path: str) -> str:
    process = await asyncio.create_subprocess_exec(
        path,
        "-classad",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(_WITHIN_S):
            said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise ProtocolError(f"with -classad it exits with {process.returncode}")
    return said.decode(errors="replace")
