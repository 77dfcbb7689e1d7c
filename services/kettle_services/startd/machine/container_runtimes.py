"""
Containers on this machine: the working runtimes are found at the start, passed to jobs' starters, and advertised.
"""

import asyncio
import logging
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Final

import msgspec

from kettle.execution.containers.images.sif import sif_program
from kettle.execution.containers.images.sources import image_cache
from kettle.execution.containers.job_container import bind
from kettle.execution.containers.policy import ENGINES, ContainerPolicy, FoundRuntime
from kettle.execution.containers.probe import ProbeOrder, ProbeResult, longest
from kettle.execution.site_probes.declared import CvmfsProbe
from kettle.execution.system.linux import descendants_of, parent_of, signal_process
from kettle.runtime import SettingsError
from kettle_services.startd.machine import host
from kettle_services.startd.settings import StartdSettings
from kettle_wire.ads import Ad

_log: Final = logging.getLogger(__name__)
_GRACE_S: Final = 15.0
"""For a trial's process to start, beyond what each runtime has."""
_TIDYING_S: Final = 600.0
_ATTRIBUTES: Final = {
    "bubblewrap": "HasBubblewrap",
    "runc": "HasRunc",
    "crun": "HasCrun",
    "podman": "HasPodman",
    "docker": "HasDockerEngine",
}


async def find_containers(settings: StartdSettings, execute: Path) -> tuple[ContainerPolicy | None, Ad]:
    """
    How containers run here (None: not at all), and what the machine's ads say about it.

    Raises:
        SettingsError: a bind mount makes no sense here, or jobs are to run in containers only and none work.
    """
    _check_binds(settings)
    images = Path(settings.container_images) if settings.container_images else execute / "images"
    found: list[FoundRuntime] = []
    reasons: list[str] = []
    for tried in await _probe(settings, execute) if settings.container_runtimes else []:
        if tried.why:
            reasons.append(f"{tried.name}: {tried.why}")
            # What is installed was meant to work; that something is not installed is no news.
            level = logging.WARNING if tried.path else logging.INFO
            _log.log(level, "no containers by %s: %s", tried.name, tried.why)
        else:
            found.append(FoundRuntime(tried.name, tried.path, tried.options))
    if settings.container_always and all(runtime.is_engine for runtime in found):
        if found:
            reasons.append("docker and podman run no container without an image")
        raise SettingsError(
            "KETTLE_STARTD_CONTAINER_ALWAYS: jobs are to run in containers only, and there is nothing here that runs "
            f"any ({'; '.join(reasons) or 'none could be tried'})."
        )
    if not found:
        return None, {}
    policy = ContainerPolicy(
        runtimes=found,
        images=str(images),
        limit=settings.container_images_mib << 20,
        binds=[*settings.container_bind, *_software(settings)],
        network=settings.container_network,
        devices=settings.container_devices,
        always=settings.container_always,
        auth_file=settings.container_auth_file,
        pull_s=settings.container_pull_timeout,
    )
    wrapped: Ad = {"HasSingularity": True} if str(settings.singularity_image_expr) != "undefined" else {}
    return policy, attributes(found) | wrapped


def _software(settings: StartdSettings) -> list[str]:
    """
    Where the CVMFS repositories are that the machine probes: containers see them, unless they are told otherwise.
    """
    told = {bind(text).destination for text in settings.container_bind}
    mounts = dict.fromkeys(probe.mount for probe in settings.probes if isinstance(probe, CvmfsProbe))
    return [mount for mount in mounts if mount not in told and os.path.isdir(mount)]  # noqa: PTH112 - a string


def attributes(found: list[FoundRuntime]) -> Ad:
    """What a machine with these runtimes advertises."""
    engines = any(runtime.is_engine for runtime in found)
    return {
        "HasContainer": True,
        "HasSandboxImage": True,
        "ContainerRuntimes": ",".join(runtime.name for runtime in found),
        **({"HasDocker": True, "HasDockerURL": True} if engines else {}),
        **({"HasSIF": True} if sif_program() else {}),
        **{_ATTRIBUTES[runtime.name]: True for runtime in found},
    }


async def tidy_containers(
    policy: ContainerPolicy | None, execute: Path, *, every: float = _TIDYING_S
) -> None:
    """
    Remove leftovers, and repeat that periodically: unfinished images of starters, images for which there is no room,
    and Kettle's containers and images in engines that belong to no job here; where there are engines, it never returns.
    """
    stopped = threading.Event()
    try:
        while policy is not None:
            await asyncio.to_thread(_tidy, policy, execute, stopped)
            if not policy.engines:
                return
            await asyncio.sleep(every)
    finally:
        stopped.set()  # the thread would wait for an engine that hangs, and the process for the thread


def _tidy(policy: ContainerPolicy, execute: Path, stopped: threading.Event) -> None:
    try:
        image_cache(policy).shrink()
    except OSError as error:  # a job that needs the place says what is wrong with it
        _log.warning("the unpacked images cannot be tidied up", extra={"cause": str(error)})
    if policy.engines:
        from kettle.execution.containers.images import engine_store
        from kettle.execution.containers.runtimes import engine
        from kettle.execution.containers.runtimes.engine_client import EngineError, StoppedError

        def watch() -> None:
            if stopped.is_set():
                raise StoppedError("the startd ends")

        try:
            for left in engine.leftovers(policy.engines, execute, watch):
                _log.warning("a container was left and is gone now", extra={"container": left})
            engine_store.tidy(policy, watch)
        except (EngineError, OSError) as error:
            _log.warning("what engines have for us cannot be tidied up", extra={"cause": str(error)})


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


async def _probe(settings: StartdSettings, execute: Path) -> list[ProbeResult]:
    """All of them, in the order of the settings; meanwhile engines are tried, which take longest."""
    names = settings.container_runtimes
    kinds: dict[str, list[str]] = {
        "probe-engines-": [name for name in names if name in ENGINES],
        "probe-runtimes-": [name for name in names if name not in ENGINES],
    }
    trials = (
        _tried(
            ProbeOrder(
                names=some,
                place=str(execute),
                account=host.account(settings, 0),
                binds=settings.container_bind,
                network=settings.container_network,
                options=settings.container_engine_options,
                prefix=prefix,
            )
        )
        for prefix, some in kinds.items()
        if some
    )
    found = {each.name: each for tried in await asyncio.gather(*trials) for each in tried}
    return [found[name] for name in names if name in found]


async def _tried(order: ProbeOrder) -> list[ProbeResult]:
    """
    In a process of its own: what it does to itself to become the job's account is nothing for one with threads.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "kettle.execution.containers.probe",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    tried: list[ProbeResult] = []
    try:
        async with asyncio.timeout(_GRACE_S + longest(order)):
            process.stdin.write(msgspec.json.encode(order))
            process.stdin.close()
            async for line in process.stdout:
                tried.append(msgspec.json.decode(line, type=ProbeResult))  # noqa: PERF401 - output before a hang counts
    except (TimeoutError, ConnectionError, msgspec.MsgspecError) as error:
        _log.warning(
            "containers cannot be tried any further", extra={"cause": str(error) or "it takes too long"}
        )
    finally:
        if process.returncode is None and parent_of(process.pid) == os.getpid():
            for pid in (*descendants_of(process.pid), process.pid):
                signal_process(pid, signal.SIGKILL)
        await process.wait()
    return tried
