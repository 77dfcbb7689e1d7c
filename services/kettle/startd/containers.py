"""
Containers on this machine: what works is found out at the start, told to jobs' starters, and advertised.
"""

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path
from typing import Final

import msgspec

from kettle.execution.containers.cache import ImageCache
from kettle.execution.containers.contained import bind
from kettle.execution.containers.policy import ContainerPolicy, Found
from kettle.execution.containers.probe import Order, Tried
from kettle.execution.linux import descendants_of, signal_process
from kettle.runtime import SettingsError
from kettle.startd import host
from kettle.startd.settings import StartdSettings
from kettle.wire.ads import Ad

_log: Final = logging.getLogger(__name__)
_GRACE_S: Final = 15.0
"""For a trial's process to start, beyond what each runtime has."""
_ATTRIBUTES: Final = {"bubblewrap": "HasBubblewrap", "runc": "HasRunc", "crun": "HasCrun"}


async def find_containers(settings: StartdSettings, execute: Path) -> tuple[ContainerPolicy | None, Ad]:
    """
    How containers run here (None: not at all), and what the machine's ads say about it.

    Raises:
        SettingsError: a bind mount makes no sense here, or jobs are to run in containers only and none work.
    """
    _check_binds(settings)
    images = Path(settings.container_images) if settings.container_images else execute / "images"
    found: list[Found] = []
    reasons: list[str] = []
    for tried in await _probe(settings, execute) if settings.container_runtimes else []:
        if tried.why:
            reasons.append(f"{tried.name}: {tried.why}")
            _log.info("no containers by %s", tried.name, extra={"cause": tried.why})
        else:
            found.append(Found(tried.name, tried.path))
    if not found:
        if settings.container_always:
            raise SettingsError(
                "KETTLE_STARTD_CONTAINER_ALWAYS: jobs are to run in containers only, and there is nothing here that runs "
                f"any ({'; '.join(reasons) or 'none could be tried'})."
            )
        return None, {}
    policy = ContainerPolicy(
        runtimes=found,
        images=str(images),
        limit=settings.container_images_mib << 20,
        binds=settings.container_bind,
        network=settings.container_network,
        devices=settings.container_devices,
        always=settings.container_always,
    )
    return policy, attributes(found)


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


async def tidy_images(policy: ContainerPolicy | None) -> None:
    """
    Remove unfinished images that a former startd's starters left, and those for which there is no room.
    """
    if policy is None:
        return
    try:
        await asyncio.to_thread(ImageCache(policy.images, policy.limit).shrink)
    except OSError as error:  # a job that needs the place says what is wrong with it
        _log.warning("the unpacked images cannot be tidied up", extra={"cause": str(error)})


def _check_binds(settings: StartdSettings) -> None:
    for text in settings.container_bind:
        try:
            source = bind(text).source
        except ValueError as error:
            raise SettingsError(f"KETTLE_STARTD_CONTAINER_BIND: {error}.") from error
        if not os.path.exists(source):  # noqa: PTH110 - a string
            raise SettingsError(
                f"KETTLE_STARTD_CONTAINER_BIND: {source} is not there, and no container could start."
            )


async def _probe(settings: StartdSettings, execute: Path) -> list[Tried]:
    """
    In a process of its own: what it does to itself to become the job's account is nothing for one with threads.
    """
    order = Order(
        names=list(settings.container_runtimes),
        place=str(execute),
        account=host.account(settings, 0),
        binds=settings.container_bind,
        network=settings.container_network,
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "kettle.execution.containers.probe",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    tried: list[Tried] = []
    try:
        async with asyncio.timeout(_GRACE_S + order.patience * len(order.names)):
            process.stdin.write(msgspec.json.encode(order))
            process.stdin.close()
            async for line in process.stdout:
                tried.append(msgspec.json.decode(line, type=Tried))  # noqa: PERF401 - what was said before it hung counts
    except (TimeoutError, ConnectionError, msgspec.MsgspecError) as error:
        _log.warning(
            "containers cannot be tried any further", extra={"cause": str(error) or "it takes too long"}
        )
    finally:
        for pid in (*descendants_of(process.pid), process.pid) if process.returncode is None else ():
            signal_process(pid, signal.SIGKILL)
        await process.wait()
    return tried
