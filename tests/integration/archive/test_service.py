"""Services keep the log short by themselves, and read the archive that their settings name."""

from pathlib import Path

from kettle.runtime import Runtime
from kettle.runtime.pool_connections import join_log
from kettle.storage import PgLog
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import server_directory
from kettle.testing.services import backend, eventually, hosted
from kettle_services.accounting.settings import AccountingSettings
from kettle_services.accounting.wiring import serve
from kettle_wire.frames import encode

from .conftest import SMALL, frames, put, tables


async def test_accounting_archives_what_is_older_than_its_setting(directory: Path) -> None:
    """From its start on; afterwards a service that joins the log reads all of it."""
    old = frames("s", [20] * 20)
    with server_directory() as place:
        async with backend(place) as made, PgLog.connect(made.dsn, piece_events=SMALL) as log:
            await log.take("s", owner="me")
            await put(log, old)
            settings = made.settings(AccountingSettings, retention_days=0.5, archive_directory=str(directory))
            async with hosted("accounting", settings, serve, within=PATIENCE_S):

                async def is_short() -> bool:
                    return len(await tables(log)) <= 2

                await eventually(is_short, within=PATIENCE_S)
            read: list[bytes] = []

            async def reads(rt: Runtime, settings: AccountingSettings) -> None:
                joined = await join_log(rt, settings)
                read.extend([encode(f) async for f in joined.read("s")])
                rt.ready()
                await rt.stopping.wait()

            async with hosted("accounting", settings, reads, within=PATIENCE_S):
                pass
    assert [encode(f) for f in old] == read
