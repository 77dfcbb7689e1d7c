"""
Processes that look after one job at a batch system and are killed, one at each step; each goes on where the last one stopped.

    python -m tests.integration.ce.deaths DSN SETTINGS PLACE

They are forked from a process that has read all modules.  How a job was at its end is written to `PLACE/NAME`.
"""

import asyncio
import os
import secrets
import signal
import sys
import traceback
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from tests.conformance.batch.entrypoint import STARTD, Entrypoint, World, until

from kettle import faults
from kettle.pool.processes import end_all, mark, of_pool
from kettle.storage import PgLog, PgWorkingSet
from kettle.testing.patience import PATIENCE_S
from kettle.testing.services import Backend
from kettle_services.ce.attempts.node_files import NodeFiles
from kettle_services.ce.batch.local import LocalJobs
from kettle_services.ce.batch.port import Submission
from kettle_services.ce.batch.settings import BatchSettings, FilesSettings
from kettle_services.ce.domain.attempts.attempt import Stage
from kettle_wire.attempts import Ending
from kettle_wire.batch import BatchId, BatchKind
from kettle_wire.codes import HoldCode
from kettle_wire.commands.startd import CONFIRM, DEACTIVATE, ClaimKey, Confirm, Deactivate, Deactivation
from kettle_wire.worker_reports import FinalReport, Report

_ROOT: Final = Path(__file__).parents[3]
_ENDS: Final = "echo ran >>runs; exit 7"
_STAYS: Final = "while :; do sleep 1; done"
_SETTLING_S: Final = 15.0
"""Within this a command of these processes ends, and so long a job is in doubt."""
STEPS: Final = {
    "ended": (_ENDS, ["batch.submitting", "batch.taken", "batch.found", "batch.answered", "batch.ended"]),
    "removed": (_STAYS, ["batch.ordering", "batch.ordered"]),
    "brought": (_ENDS, ["batch.brought"]),
}
"""The jobs, and where those who look after them are killed, one after the other."""


class Ends:
    """How the jobs ended."""

    def __init__(self, place: Path) -> None:
        self.reports: Final = {
            name: msgspec.json.decode((place / name).read_bytes(), type=FinalReport) for name in STEPS
        }
        lines = (place / "submissions").read_text().splitlines() if (place / "submissions").exists() else []
        self.submissions: Final = {name: lines.count(name) for name in STEPS}
        """How often each was submitted."""

    def code(self, name: str) -> int | None:
        """With which exit code."""
        ran = self.reports[name].result.exit
        return None if ran is None else ran.code

    def outputs(self, name: str) -> dict[str, bytes | None]:
        """What it left."""
        return {each.name: each.data for each in self.reports[name].outputs}

    def reason(self, name: str) -> str | None:
        """Why, otherwise."""
        ending = self.reports[name].result.ending
        return None if ending is None else ending.reason


async def deaths(settings: BatchSettings, backend: Backend, place: Path) -> Ends:
    """All of them."""
    hook = place / "hook"  # which is asked before each submission
    hook.write_text(f"#!/bin/sh\ncat {place}/job >>{place}/submissions\n")
    hook.chmod(0o755)
    settings = msgspec.structs.replace(
        settings, hook=str(hook), poll_least=0.1, poll_most=0.2, settling=0.1, patience=_SETTLING_S
    )
    words = [backend.dsn, msgspec.json.encode(settings).decode(), str(place)]
    name = f"deaths{secrets.token_hex(6)}"
    try:
        made = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.integration.ce.deaths",
            *words,
            env={**os.environ, **mark(name), "PYTHONPATH": str(_ROOT)},
            cwd=_ROOT,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(3 * PATIENCE_S):
            _, errors = await made.communicate()
    finally:
        left = end_all(partial(of_pool, name, place / "none of theirs"), deadline_s=PATIENCE_S)
    assert 0 == made.returncode, errors.decode()
    assert not left, left
    return Ends(place)


class _Standing:
    def on_reread(self, reread: Callable[[], None]) -> None:
        """It never is told to."""


@asynccontextmanager
async def _files(place: Path) -> AsyncGenerator[NodeFiles | None]:
    """What nodes fetch their files from, if `PLACE/files` has settings of it."""
    said = place / "files"
    if not said.exists():
        yield None
        return
    files = NodeFiles(msgspec.json.decode(said.read_bytes(), type=FilesSettings), place)
    async with files.running(_Standing()):
        yield files


async def look_after(dsn: str, settings: BatchSettings, place: Path, name: str) -> None:
    """Begin a job, or go on with it, until its end is reported."""
    async with PgLog.connect(dsn, patience=PATIENCE_S) as log, _files(place) as files:
        known = PgWorkingSet(log.database)
        # No claim is another's, or a job would have the name of one before it.
        world = World(settings, place, log=log, working_set=known, files=files, number=[*STEPS].index(name))
        async with world.running() as entrypoint:
            await entrypoint.well()
            if not entrypoint.claims:
                await entrypoint.submit(STEPS[name][0])
            finals: list[Report] = []

            def is_over() -> bool:
                finals[:] = [each for each in world.reports if isinstance(each.body, FinalReport)]
                return bool(finals)

            if name == "removed":
                await _remove(world, entrypoint)
            await until(is_over, lambda: f"{entrypoint.claims}")
            await world.shadow.call(CONFIRM, STARTD, Confirm(recorded=[finals[0].key]))
            (place / name).write_bytes(msgspec.json.encode(finals[0].body))


async def _remove(world: World, entrypoint: Entrypoint) -> None:
    """Once it is there; that it is to go was said already, when somebody has said it."""
    (claim,) = entrypoint.claims

    def is_there() -> bool:
        run = entrypoint.claims[claim].run
        return run is not None and run.stage in {Stage.SUBMITTED, Stage.ENDED}

    await until(is_there, lambda: f"{entrypoint.claims}")
    run = entrypoint.claims[claim].run
    assert run is not None
    order = Deactivation(
        key=ClaimKey(claim, f"secret {claim.rpartition('#')[2]}"),
        job=run.job,
        attempt=run.attempt,
        ending=Ending(code=HoldCode.UserRequest, reason="somebody said so"),
    )
    await world.shadow.call(DEACTIVATE, STARTD, Deactivate(attempts=[order]))


def _end(dsn: str, settings: BatchSettings, place: Path, name: str, fault: str) -> int:
    """How a process ends that is killed where `fault` says."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        faults.arm({faults.VARIABLE: f"{fault}=kill" if fault else ""})
        asyncio.run(look_after(dsn, settings, place, name))
        os._exit(0)
    except BaseException:  # noqa: BLE001 - it is said, and this process goes no further
        traceback.print_exc()
        os._exit(1)


def _count(place: Path) -> None:
    """Submissions to this machine, which asks no hook."""
    submit = LocalJobs.submit

    async def counted(self: LocalJobs, submission: Submission) -> BatchId:
        with (place / "submissions").open("a") as submissions:
            submissions.write((place / "job").read_text())
        return await submit(self, submission)

    LocalJobs.submit = counted  # type: ignore[method-assign]


def main(dsn: str, settings: BatchSettings, place: Path) -> None:
    """One after the other."""
    if settings.kind is BatchKind.LOCAL:
        _count(place)
    for name, (_, steps) in STEPS.items():
        (place / "job").write_text(f"{name}\n")
        for fault in steps:
            status = _end(dsn, settings, place, name, fault)
            if -signal.SIGKILL != status or (place / name).exists():
                told = (place / name).read_text() if (place / name).exists() else "nothing"
                sys.exit(f"{name}: {status}, where it was to be killed at {fault}; reported: {told}")
        if status := _end(dsn, settings, place, name, ""):
            sys.exit(f"{name}: {status} at its end")


if __name__ == "__main__":
    main(sys.argv[1], msgspec.json.decode(sys.argv[2].encode(), type=BatchSettings), Path(sys.argv[3]))
