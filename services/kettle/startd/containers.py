"""
Containers on this machine: what works is found out at the start, told to jobs' starters, and advertised.
"""

import asyncio
import logging
import sys
from pathlib import Path
from typing import Final

import msgspec

from kettle.execution.containers.policy import ContainerPolicy, Found
from kettle.execution.containers.probe import Probed
from kettle.runtime import SettingsError
from kettle.startd import host
from kettle.startd.settings import StartdSettings
from kettle.wire.ads import Ad

_log: Final = logging.getLogger(__name__)
_WITHIN_S: Final = 60.0
_ATTRIBUTES: Final = {"bubblewrap": "HasBubblewrap", "runc": "HasRunc", "crun": "HasCrun"}


async def find_containers(settings: StartdSettings, execute: Path) -> tuple[ContainerPolicy | None, Ad]:
    """
    How containers run here (None: not at all), and what the machine's ads say about it.

    Raises:
        SettingsError: a bind mount is not well written.
    """
    _check_binds(settings)
    if not settings.container_runtimes:
        return None, {}
    images = Path(settings.container_images) if settings.container_images else execute / "images"
    probed = await _probe(settings, execute, images)
    for name, why in probed.reasons.items():
        _log.info("no containers by %s", name, extra={"cause": why})
    if not probed.found:
        return None, {}
    policy = ContainerPolicy(
        runtimes=probed.found,
        images=str(images),
        limit=settings.container_images_mib << 20,
        binds=settings.container_bind,
        network=settings.container_network,
        devices=settings.container_devices,
        always=settings.container_always,
    )
    return policy, attributes(probed.found)


def attributes(found: list[Found]) -> Ad:
    """
    What a machine with these runtimes advertises.
    """
    return {
        "HasContainer": True,
        "HasSandboxImage": True,
        "ContainerRuntimes": ",".join(runtime.name for runtime in found),
        **{_ATTRIBUTES[runtime.name]: True for runtime in found},
    }


def _check_binds(settings: StartdSettings) -> None:
    from kettle.execution.containers.contained import bind

    for text in settings.container_bind:
        try:
            bind(text)
        except ValueError as error:
            raise SettingsError(f"KETTLE_STARTD_CONTAINER_BIND: {error}.") from error


async def _probe(settings: StartdSettings, execute: Path, images: Path) -> Probed:
    """
    In a process of its own: what it does to itself to become the job's account is nothing for one with threads.
    """
    account = host.account(settings, 0)
    order = msgspec.json.encode(
        {
            "names": settings.container_runtimes,
            "place": str(execute),
            "account": account,
            "images": str(images),
            "limit": settings.container_images_mib << 20,
        }
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "kettle.execution.containers.probe",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(_WITHIN_S):
            said, _ = await process.communicate(order)
        return msgspec.json.decode(said, type=Probed)
    except (TimeoutError, msgspec.MsgspecError) as error:
        _log.warning("containers cannot be tried: there will be none", extra={"cause": str(error)})
        return Probed()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
