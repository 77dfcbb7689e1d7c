"""
Runs the probes of the machine, each again and again, in processes of their own: what hangs there hangs nothing here.
"""

import asyncio
import contextlib
import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from kettle.execution.containers.probe import ProbeOrder
from kettle.execution.site_probes.declared import CHECKED, AnyProbe, Finding
from kettle.execution.system.linux import end_group
from kettle.retry.backoff import steady
from kettle.retry.loop import Waits
from kettle.runtime import SettingsError
from kettle_services.startd.domain.ads import slot_ad, startd_ad
from kettle_services.startd.domain.probes import probe_attributes, probe_trouble
from kettle_services.startd.domain.state.machine import Machine
from kettle_services.startd.machine import host
from kettle_services.startd.machine.survey import OF_CLAIMS
from kettle_services.startd.settings import StartdSettings
from kettle_wire.ads import Ad

_log: Final = logging.getLogger(__name__)
_SPREAD: Final = 0.1
_WHILE_FAILING_S: Final = 60.0
"""The longest until one that failed is run again: the machine comes back soon."""
_GRACE_S: Final = 5.0
"""For the process to start and to end, beyond the probe's own time."""
_FAREWELL_S: Final = 1.0
"""For one that was killed; what hangs in the kernel cannot be, and is not waited for."""
_TOLD_BYTES: Final = 1 << 20


class Probing:
    """The probes of one machine; a machine without any costs nothing."""

    def __init__(
        self, machine: Machine, settings: StartdSettings, execute: Path, changed: Callable[[], None]
    ) -> None:
        """
        `changed` is called when slots say something else.

        Raises:
            SettingsError: two probes look at the same.
        """
        self._machine = machine
        self._probes = settings.probes
        if len({probe.label for probe in self._probes}) < len(self._probes):
            raise SettingsError(
                "KETTLE_STARTD_PROBES: two probes have one name, by which reasons tell them apart; give each a name of its own."
            )
        self._account = host.account(settings, 0)
        self._order = ProbeOrder(
            names=list(settings.container_runtimes),
            prefix="probe-again-",
            place=str(execute),
            account=self._account,
            binds=settings.container_bind,
            network=settings.container_network,
            options=settings.container_engine_options,
        )
        self._changed = changed
        self._found: dict[str, Finding] = {}
        self._taken = _taken(machine)
        self._tell()

    async def run(self) -> None:
        """Run all of them; returns only if there are none."""
        async with asyncio.TaskGroup() as group:
            for probe in self._probes:
                group.create_task(self._repeat(probe), name=f"probe {probe.label}")

    async def _repeat(self, probe: AnyProbe) -> None:
        well = Waits(steady(probe.period, spread=_SPREAD))
        ill = Waits(steady(min(probe.period, _WHILE_FAILING_S), spread=_SPREAD))
        while True:
            found = await self._asked(probe)
            before = self._found.get(probe.label)
            self._found[probe.label] = found
            if before is None or before.why != found.why:
                level = logging.WARNING if found.why else logging.INFO
                _log.log(level, "probe %s: %s", probe.label, found.why or "is well")
            self._tell()
            await (ill if found.why else well).wait()

    def _tell(self) -> None:
        machine = self._machine
        before = machine.unfit, _but_times(machine.probed)
        machine.unfit = probe_trouble(self._probes, self._found)
        machine.probed = probe_attributes(self._probes, self._found, self._taken)
        if before != (machine.unfit, _but_times(machine.probed)):
            self._changed()

    async def _asked(self, probe: AnyProbe) -> Finding:
        """
        What a process finds; one that does not end has failed, and is waited for before there is another.
        """
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "kettle.execution.site_probes"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,  # what it starts goes with it
            )
        except OSError as error:
            return Finding(why=f"it cannot be run: {error.strerror}", at=time.time())
        task = {"probe": probe, "account": self._account, "containers": self._order}
        try:
            async with asyncio.timeout(probe.timeout + _GRACE_S):
                said, told = await _conversation(process, msgspec.json.encode(task))
                await process.wait()
        except TimeoutError:
            return Finding(why=f"it did not end within {probe.timeout:g} s", at=time.time())
        finally:
            await _end(process)
        return _read(said, told)


async def _conversation(process: asyncio.subprocess.Process, task: bytes) -> tuple[bytes, bytes]:
    """The process gets its task; what it says, and the end of its complaints."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(task)
    process.stdin.close()
    async with asyncio.TaskGroup() as group:
        said = group.create_task(_some(process.stdout))
        told = group.create_task(_some(process.stderr))
    return said.result(), told.result()


async def _some(stream: asyncio.StreamReader) -> bytes:
    """The first bytes of a stream, which is read to its end: who writes is not to wait."""
    said = b""
    while piece := await stream.read(1 << 16):
        said = (said + piece)[:_TOLD_BYTES]
    return said


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    end_group(process.pid)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_FAREWELL_S):
            await process.wait()
            return
    _log.warning("a probe cannot be killed: what it looks at hangs", extra={"process": process.pid})


def _read(said: bytes, told: bytes) -> Finding:
    try:
        found = msgspec.json.decode(said, type=Finding)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        words = " ".join(told.decode(errors="replace").split())[-300:]
        found = Finding(why=f"it died: {words or 'it said nothing'}")
    return msgspec.structs.replace(found, at=time.time())


def _but_times(ad: Ad) -> Ad:
    return {name: value for name, value in ad.items() if not name.endswith(CHECKED)}


def _taken(machine: Machine) -> frozenset[str]:
    """
    Names of attributes, in lower case, that slots have; what the owner of the machine gave may be said by a probe.
    """
    facts = machine.facts
    said = startd_ad(machine, now=0.0, version="")
    for slot in facts.slots:
        said |= slot_ad(machine, slot, now=0.0)
    given = {name.lower() for name in facts.attributes}
    return frozenset(name.lower() for name in said) - given | OF_CLAIMS
