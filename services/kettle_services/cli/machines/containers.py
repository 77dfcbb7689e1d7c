"""`kettle site containers` and `kettle site database`."""

import argparse
import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kettle_services.cli.errors import CommandError
from kettle_services.cli.options import at_least, json_option
from kettle_services.cli.output.screen import Screen

if TYPE_CHECKING:
    from kettle.storage.database import Connection

_PATIENCE_S: Final = 60.0


def containers_arguments(parser: argparse.ArgumentParser) -> None:
    """What `containers` takes."""
    parser.add_argument("directory", type=Path, metavar="DIRECTORY", help="where the files are, or will be")
    parser.add_argument("--pool", default="site", metavar="NAME", help="the pool's name (default: site)")
    parser.add_argument(
        "--database",
        default="postgres:5432/kettle",
        metavar="HOST:PORT/NAME",
        help="where PostgreSQL is; options of a URL may follow (default: postgres:5432/kettle)",
    )
    parser.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="NAME|ADDRESS",
        help="by which the pool is reached besides nats, iam and gateway; may be repeated",
    )
    parser.add_argument(
        "--iam-url", default="https://iam:9643", metavar="URL", help="where machines reach iam, to join"
    )
    parser.add_argument(
        "--bus-servers",
        type=at_least(1, 5),
        default=1,
        metavar="N",
        help="NATS servers of a cluster (default: 1)",
    )
    parser.add_argument(
        "--account",
        type=at_least(0),
        default=9618,
        metavar="UID",
        help="that of the containers, to which root gives the files (default: 9618)",
    )
    json_option(parser)


def make_containers(arguments: argparse.Namespace, screen: Screen) -> int:
    """Write the files."""
    from kettle.pool.container_files import ContainerFilesError, ContainerPool, make

    wanted = ContainerPool(
        pool=arguments.pool,
        database=arguments.database,
        names=arguments.also,
        iam_url=arguments.iam_url,
        bus_servers=arguments.bus_servers,
        account=arguments.account,
    )
    try:
        written = make(wanted, arguments.directory, now=datetime.now(UTC))
    except ContainerFilesError as error:
        raise CommandError(str(error)) from error
    if screen.as_json:
        screen.json([str(path) for path in written])
        return 0
    screen.say(
        f"{len(written)} files for the containers of the pool {arguments.pool} are in {arguments.directory}."
    )
    screen.note("Keep its trust/ and pki/ where no container reaches them, and a copy elsewhere.")
    return 0


def database_arguments(parser: argparse.ArgumentParser) -> None:
    """What `database` takes."""
    parser.add_argument(
        "--passwords",
        type=Path,
        default=Path("/run/secrets"),
        metavar="DIRECTORY",
        help="with a file SERVICE.password for each service (default: /run/secrets)",
    )
    json_option(parser)


def prepare_database(arguments: argparse.Namespace, screen: Screen) -> int:
    """Bring the schema up to date, and give each service its role."""
    from kettle.eventsourcing.log import LogUnavailableError
    from kettle.runtime.settings import Settings
    from kettle.runtime.settings_problems import SettingsError
    from kettle.storage.database import ERRORS
    from kettle.storage.service_roles import RIGHTS

    try:
        url = Settings.load("cli", environ=dict(os.environ)).database_url
        if not url:
            raise CommandError(
                "name the database for its owner: KETTLE_DATABASE_URL=file:/run/secrets/owner.database"
            )
        passwords = {
            service: (arguments.passwords / f"{service}.password").read_text(encoding="ascii").strip()
            for service in RIGHTS
        }
        asyncio.run(_prepare(url, passwords))
    except SettingsError as error:
        raise CommandError(str(error)) from error
    except (*ERRORS, LogUnavailableError, UnicodeDecodeError) as error:
        raise CommandError(f"the database cannot be prepared: {error}") from error
    if screen.as_json:
        screen.json({"roles": sorted(passwords)})
    else:
        screen.say(f"The database is up to date, and has {len(passwords)} roles.")
    return 0


async def _prepare(url: str, passwords: dict[str, str]) -> None:
    """
    In a database that is in use, older services work on with what is done here; `kettle upgrade finish` does the rest.
    """
    from kettle.storage import service_roles
    from kettle.storage.database import Database
    from kettle.storage.migration import migrate

    async def bring_up_to_date(connection: "Connection") -> None:
        new = await connection.fetchval("SELECT to_regclass('log.migration') IS NULL")
        await migrate(connection, stages=("pre", "post") if new else ("pre",))

    async def give(connection: "Connection") -> None:
        await service_roles.give(connection, passwords)

    async with Database.connect(url, connections=1, patience=_PATIENCE_S) as database:
        await database.run(bring_up_to_date, patience=_PATIENCE_S)
        await database.run(give, patience=_PATIENCE_S)
