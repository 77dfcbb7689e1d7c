"""Workers of these tests: a place for their files, their settings, and a pool around them."""

import asyncio
import secrets
import shutil
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.pool.personal_settings import slot_uid_base
from kettle.testing.patience import PATIENCE_S
from kettle.testing.submit_side import POOL, STARTD, SubmitSide
from kettle.testing.worker import WorkerPool
from kettle_services.startd.settings import StartdSettings
from kettle_services.startd.wiring import running
from kettle_wire.identity import daemon
from kettle_wire.subjects import Subjects


@contextmanager
def open_directory() -> Generator[Path]:
    """
    A directory that other accounts can pass through; the temporary directories of pytest are closed to them.
    """
    path = Path(tempfile.mkdtemp(prefix="kettle-"))
    path.chmod(0o711)
    try:
        yield path
    finally:
        shutil.rmtree(path)


def worker_settings(home: Path) -> StartdSettings:
    """Settings of a small worker without containers, with short times."""
    return StartdSettings(
        pool=POOL,
        home=str(home),
        name=STARTD,
        num_cpus=8,
        memory=4096,
        disk=1 << 20,
        report_repeat=0.3,
        machine_max_vacate_time="TARGET.Patient =?= true ? 3600 : 5",
        monitor_interval=0.2,
        adoption_patience=0.5,
        checkpoint_pause=0.01,
        container_runtimes=(),  # trying them takes longer than most tests
        mount_under_scratch=(),  # jobs tell their tests something by files below /tmp
        slot_uid_base=slot_uid_base(secrets.token_hex(8)),  # tests run side by side
    )


@asynccontextmanager
async def worker_pool(settings: StartdSettings) -> AsyncGenerator[WorkerPool]:
    """A submit side that listens, and no worker yet: its startds will have these settings."""
    server = MemoryServer()
    schedd, shadow = (
        MemoryBus(server, subjects=Subjects(POOL), identity=daemon(role), deadline=PATIENCE_S)
        for role in ("schedd", "shadow")
    )
    submitter = SubmitSide(schedd, shadow)
    await submitter.prepare()
    listening = asyncio.create_task(submitter.listen())
    pool = WorkerPool(server, submitter, Path(settings.home), lambda bus: running(bus, settings))
    try:
        yield pool
    finally:
        pool.clean()
        listening.cancel()
        schedd.close()
        shadow.close()
