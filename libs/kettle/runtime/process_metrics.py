"""What every process measures of itself."""

import asyncio
import os
import resource
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from kettle.runtime.measurements import Distribution, Measurements
from kettle_wire.telemetry import process_metrics as metrics

TICK_S: Final = 1.0
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


@asynccontextmanager
async def measure_process(measurements: Measurements) -> AsyncGenerator[None]:
    """Measure the process while the context lasts."""
    measurements.observe(metrics.CPU_TIME, _cpu_time)
    measurements.observe(metrics.MEMORY, _memory)
    measurements.observe(metrics.OPEN_FILES, _open_files)
    measurements.observe(metrics.UPTIME, lambda: time.time() - measurements.began)
    watching = asyncio.create_task(_watch_lag(measurements.histogram(metrics.LOOP_LAG)), name="loop lag")
    try:
        yield
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


async def _watch_lag(lag: Distribution) -> None:
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + TICK_S
        await asyncio.sleep(TICK_S)
        lag.record(max(0.0, loop.time() - due))


def _cpu_time() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _memory() -> float:
    return float(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE


def _open_files() -> float:
    return float(sum(1 for _ in Path("/proc/self/fd").iterdir()) - 1)  # one is the directory itself
