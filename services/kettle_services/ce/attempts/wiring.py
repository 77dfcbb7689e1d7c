"""How the parts of an entrypoint hang together that look after jobs at batch systems."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kettle import VERSION
from kettle.accounts.lookup import Accounts
from kettle.bus.ports import Bus, RefusedError
from kettle.execution.input_files.cache import InputCache
from kettle.execution.input_files.download import Fetcher
from kettle.runtime import SettingsError
from kettle_services.ce.attempts.book import Book, Recorder, grid_job_id, now
from kettle_services.ce.attempts.carried_sandboxes import CarriedSandboxes
from kettle_services.ce.attempts.follower import Follower
from kettle_services.ce.attempts.handlers import Handlers
from kettle_services.ce.attempts.remote_sandboxes import RemoteSandboxes
from kettle_services.ce.attempts.reports import Reporting
from kettle_services.ce.attempts.sandboxes import LocalSandboxes, Sandboxes
from kettle_services.ce.batch.opening import Opened, opened
from kettle_services.ce.batch.settings import BatchSettings
from kettle_services.ce.domain.attempts.attempt import BatchClaim, Run, Stage
from kettle_services.ce.domain.attempts.claims import expire
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.ce import batch_startd
from kettle_wire.jobs import JobId
from kettle_wire.payloads import PayloadReport
from kettle_wire.subjects import Subjects

if TYPE_CHECKING:
    from kettle_services.ce.attempts.node_files import NodeFiles

_CACHE_BYTES: Final = 1 << 30
_PATIENCE_S: Final = 60.0
"""How long a shadow may not know a file that it announced."""
_LEASES_S: Final = 30.0
_TRANSFER_S: Final = 600.0
"""Seconds for the files of one job to or from a host."""

Payloads = Callable[[JobId, PayloadReport], Awaitable[object]]
"""Records what a pilot says that it runs for others.  Raises RefusedError, BusError."""


@asynccontextmanager
async def following(
    bus: Bus,
    settings: Sequence[BatchSettings],
    claims: Mapping[str, BatchClaim],
    record: Recorder,
    *,
    pool: str,
    schedd: str,
    home: Path,
    accounts: Accounts | None = None,
    node_files: "NodeFiles | None" = None,
    payloads: Payloads | None = None,
) -> AsyncGenerator[dict[str, Follower]]:
    """
    Look after the jobs of batch systems while the context lasts; `claims` are what `record` folds, `payloads` records what pilots say
    that they run.
    """
    accounts = accounts or Accounts()
    subjects, startd = Subjects(pool), batch_startd(schedd)
    reporting = Reporting(bus, subjects, startd=startd, schedd=schedd)
    cache = InputCache(home / "cache", Fetcher(bus, subjects, patience=_PATIENCE_S), limit_bytes=_CACHE_BYTES)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    cache.restore()
    systems = {each.name: opened(each, accounts, home) for each in settings}

    def names(run: Run, system: str) -> str:
        of = systems[system].settings
        return grid_job_id(of.kind, of.host or "localhost", run)

    book = Book(claims, record, reporting, names)
    try:
        async with asyncio.TaskGroup() as tasks:
            followers = {
                name: Follower(
                    each.settings,
                    each.system,
                    _sandboxes(each, f"{pool}.{schedd}", home, accounts, node_files),
                    book,
                    cache,
                    tasks,
                    at_once=each.at_once,
                )
                for name, each in systems.items()
            }
            running = [
                tasks.create_task(loop) for loop in (reporting.run(), reporting.repeat(), _watch_leases(book))
            ]
            for each in followers.values():
                if node_files is not None and isinstance(each.sandboxes, CarriedSandboxes):
                    node_files.serve(
                        each.name, each.sandboxes, each.heard, partial(_reported, book, each.name, payloads)
                    )
                await each.take_up()
                running.append(tasks.create_task(each.follow(), name=f"follow {each.name}"))
            handlers = Handlers(book, followers, reporting, accounts, schedd=schedd, pool=pool)
            await bus.serve("startd", startd, handlers.served(), version=VERSION)
            await bus.publish(subjects.notice("startd", startd), startd.encode())
            try:
                yield followers
            finally:
                for task in running:
                    task.cancel()
                for each in followers.values():
                    each.close()
    finally:
        await _close(systems)


def _sandboxes(
    of: Opened, name: str, home: Path, accounts: Accounts, node_files: "NodeFiles | None"
) -> Sandboxes:
    directory = f"{of.settings.directory}/{name}"
    if not of.settings.shared:
        if node_files is None:
            raise SettingsError(f"batch system {of.settings.name}: shared = false wants a table [ce.files]")
        way = partial(node_files.way, of.settings.name)
        return CarriedSandboxes(directory, home / "carried" / of.settings.name, way)
    if of.commands is None or not of.settings.host:
        return LocalSandboxes(directory, accounts)
    here = home / "results" / of.settings.name
    return RemoteSandboxes(of.commands, directory, here, patience=_TRANSFER_S)


async def _reported(
    book: Book, system: str, payloads: Payloads | None, intent: str, report: PayloadReport
) -> None:
    """What the job with an intent says that it runs for others.  Raises RefusedError, BusError."""
    runs = (each.run for each in book.claims.values() if each.system == system and each.run is not None)
    run = next((run for run in runs if run.intent == intent), None)
    if run is None or run.stage is Stage.ENDED:
        raise RefusedError(RefusalCode.NOT_FOUND, "the job is over")
    if payloads is None:
        raise RefusedError(RefusalCode.UNSUPPORTED, "nobody records here what jobs run for others")
    await payloads(run.job, report)


async def _close(systems: Mapping[str, Opened]) -> None:
    for each in systems.values():
        await each.close()


async def _watch_leases(book: Book) -> None:
    while True:
        await asyncio.sleep(_LEASES_S)
        await book.record(expire(book.claims, now()))
