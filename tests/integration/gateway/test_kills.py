"""A gateway that dies at the worst moments, and servers that forget."""

import asyncio
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from kettle.testing.patience import PATIENCE_S
from kettle.testing.services import Backend, eventually, hosted
from kettle_services.gateway.wiring import serve

from .submit import SHARD, run, schedd, settings, submitted, told

CLUSTERS = 40


async def gateway(backend: Backend, home: Path, *, faults: str = "") -> asyncio.subprocess.Process:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("KETTLE_")}
    environ |= settings(backend, home=str(home)).environ("gateway")
    if faults:
        environ["KETTLE_FAULT_POINTS"] = faults
    return await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "kettle_services.gateway", env=environ
    )


async def ended(process: asyncio.subprocess.Process) -> int:
    async with asyncio.timeout(PATIENCE_S):
        return await process.wait()


@pytest.mark.parametrize("point", ["gateway.sent", "gateway.stored"])
@pytest.mark.parametrize("time", [1, 2, 5])
async def test_a_kill_between_sending_and_acknowledging(
    backend: Backend, tmp_path: Path, point: str, time: int
) -> None:
    """
    Killed after it sent events, or after they were stored and before it said so, nothing is missing and nothing twice.
    """
    async with schedd(backend) as ap:
        process = await gateway(backend, tmp_path, faults=f"{point}=kill@{time}")
        dead = asyncio.ensure_future(process.wait())
        cluster = 0
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not dead.done():
                    cluster += 1
                    await ap.record(submitted(cluster), *run(cluster))
        finally:
            if process.returncode is None:
                process.kill()
        assert -signal.SIGKILL == await dead
        head = await _head(backend)
        async with hosted("gateway", settings(backend), serve), asyncio.timeout(PATIENCE_S):
            events = await told(backend, head)
    assert [f"schedd%2Eap1:{position}" for position in range(1, head + 1)] == [event.id for event in events]
    assert head == await _last(backend)


async def _head(backend: Backend) -> int:
    tenure = await backend.log.tenure(SHARD)
    assert tenure is not None
    return tenure.head


async def _last(backend: Backend) -> int | None:
    async with backend.bus() as bus:
        return await bus.last_sequence(backend.subjects.monitor_stream)


async def test_a_paused_gateway_delays_nobody(backend: Backend, tmp_path: Path) -> None:
    """While it is stopped, commits continue; when it continues, it publishes everything once."""
    process = await gateway(backend, tmp_path)
    try:
        async with schedd(backend) as ap, asyncio.timeout(PATIENCE_S):
            await ap.record(submitted(1))
            await eventually(lambda: _is_told(backend, 1), within=PATIENCE_S)
            process.send_signal(signal.SIGSTOP)
            for cluster in range(2, CLUSTERS):
                await ap.record(submitted(cluster))
            assert 1 == await _last(backend)
            process.send_signal(signal.SIGCONT)
            events = await told(backend, CLUSTERS - 1)
    finally:
        process.kill()
        await ended(process)
    assert [f"cluster/{number}" for number in range(1, CLUSTERS)] == [event.subject for event in events]


async def _is_told(backend: Backend, count: int) -> bool:
    return (await _last(backend) or 0) >= count


async def test_two_gateways_store_each_event_once(backend: Backend) -> None:
    """That there should be one is for the sake of speed, not of truth."""
    async with (
        schedd(backend) as ap,
        hosted("gateway", settings(backend), serve),
        hosted("gateway", settings(backend), serve),
        asyncio.timeout(PATIENCE_S),
    ):
        for cluster in range(1, CLUSTERS):
            await ap.record(submitted(cluster))
        events = await told(backend, CLUSTERS - 1)
    assert CLUSTERS - 1 == len(events)
    assert [f"cluster/{number}" for number in range(1, CLUSTERS)] == [event.subject for event in events]


@pytest.mark.breaks_servers
async def test_a_bus_that_lost_everything_is_told_again(backend: Backend) -> None:
    """
    NATS comes back empty: the frames are put on it again, and so are the events, without a restart of the gateway.
    """
    async with schedd(backend) as ap, hosted("gateway", settings(backend), serve):
        for cluster in range(1, 6):
            await ap.record(submitted(cluster))
        async with asyncio.timeout(PATIENCE_S):
            await told(backend, 5)
            nats = backend.servers.nats
            await nats.stop()
            shutil.rmtree(nats.store)
            await nats.start()
            await ap.record(submitted(6))
            events = await told(backend, 6)
    assert [f"cluster/{number}" for number in range(1, 7)] == [event.subject for event in events]
