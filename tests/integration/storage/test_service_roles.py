"""What each service may do in the database, tried with its own role against everything that there is."""

import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import asyncpg
import msgspec
import pytest
import pytest_asyncio

from kettle.embedded import EmbeddedPostgres
from kettle.eventsourcing.log import Answered
from kettle.projections import PROJECTIONS, rebuild
from kettle.projections.rebuilding import prepare
from kettle.storage import Database, PgCursors, PgLog, service_roles
from kettle.storage.migration import OldSchemaError, migrate
from kettle.storage.service_roles import RIGHTS, Rights
from kettle.testing.servers.embedded import server_directory
from kettle_services.master.domain.start_order import NEEDS_DATABASE
from kettle_wire.frames import Entry, Frame

KINDS: Final = ("ce", "collector", "dagman", "identity", "negotiator", "scaler", "schedd", "sessions")
SCHEMAS: Final = ("accounting", "jobs", "machines", "negotiation")
NUMBER: Final = "(SELECT id FROM log.shard WHERE kind = '{}')"
"""The number of the shard of a kind."""

NOBODY: Final = frozenset[str]()
PIECE: Final = "0, 1, 1, 1, 1, now(), now(), '', '', 0, '', '', 0, ''"
"""All but the number of a shard in a row of the archive."""


class Deed(msgspec.Struct, frozen=True):
    """
    One statement, and for whom it is; a row that it does not find was hidden, which is a refusal as well.
    """

    what: str
    sql: str
    allowed: frozenset[str]


def services(holds: Callable[[Rights], bool]) -> frozenset[str]:
    """The services whose rights are like this."""
    return frozenset(service for service, rights in RIGHTS.items() if holds(rights))


def of_kind(kind: str) -> Iterator[Deed]:
    """What there is to do with a shard of a kind, its events, answers, working set and cursor."""
    number, own = NUMBER.format(kind), services(lambda r: r.writes == kind)
    sees = services(lambda r: kind in {r.writes, *r.reads})
    fills = services(lambda r: bool(r.fills))
    other = f"{kind}.new"
    for what, allowed, sql in (
        ("knows it", frozenset(RIGHTS), f"SELECT FROM log.shard WHERE kind = '{kind}'"),
        ("makes one", own, f"INSERT INTO log.shard (name, kind, epoch, owner, piece_events) VALUES ('{other}', '{kind}', 1, 'x', 64)"),
        ("takes it", own, f"UPDATE log.shard SET epoch = epoch + 1, owner = 'x' WHERE kind = '{kind}'"),
        ("locks it", own, f"SELECT FROM log.shard WHERE kind = '{kind}' FOR UPDATE"),
        ("renames it", NOBODY, f"UPDATE log.shard SET name = 'other' WHERE kind = '{kind}'"),
        ("deletes it", NOBODY, f"DELETE FROM log.shard WHERE kind = '{kind}'"),
        ("reads events", sees, f"SELECT FROM log.event WHERE shard = {number}"),
        ("adds events", own, f"INSERT INTO log.event SELECT id, 9, 9, 1, 1, now(), 's', 't', '', '' FROM log.shard WHERE kind = '{kind}'"),
        ("changes events", NOBODY, f"UPDATE log.event SET data = '' WHERE shard = {number}"),
        ("deletes events", NOBODY, f"DELETE FROM log.event WHERE shard = {number}"),
        ("reads answers", own, f"SELECT FROM log.command WHERE shard = {number}"),
        ("answers", own, f"INSERT INTO log.command SELECT id, 'new', 1, now(), '' FROM log.shard WHERE kind = '{kind}'"),
        ("changes answers", NOBODY, f"UPDATE log.command SET reply = '' WHERE shard = {number}"),
        ("forgets answers", own, f"DELETE FROM log.command WHERE shard = {number}"),
        ("reads its working set", own, f"SELECT FROM log.working_set WHERE shard = {number}"),
        ("saves its working set", own, f"UPDATE log.working_set SET state = '' WHERE shard = {number}"),
        ("adds to its working set", own, f"INSERT INTO log.working_set SELECT id, 'new', 1, '' FROM log.shard WHERE kind = '{kind}'"),
        ("drops of its working set", own, f"DELETE FROM log.working_set WHERE shard = {number}"),
        ("makes room", services(lambda r: bool(r.writes)), f"SELECT log.make_piece({number}, 1)"),
        ("fills its tables", NOBODY, f"SELECT log.make_piece({number}, 1000)"),
        ("drops a piece", NOBODY, f"SELECT log.drop_piece({number}, 0)"),
        ("begins its working set", own, f"INSERT INTO log.projection VALUES ('working_set', 1, '{other}')"),
        ("moves its working set", own, f"UPDATE log.projection SET epoch = 2 WHERE name = 'working_set' AND shard = '{kind}.a'"),
        ("reads cursors", frozenset(RIGHTS), f"SELECT FROM log.projection WHERE shard = '{kind}.a'"),
        ("moves cursors", fills, f"UPDATE log.projection SET frame = 1 WHERE name = 'jobs' AND shard = '{kind}.a'"),
        ("drops cursors", fills, f"DELETE FROM log.projection WHERE name = 'jobs' AND shard = '{kind}.a'"),
        ("reads its table", NOBODY, f"SELECT FROM log.event_{{{kind}}}"),
        ("reads its piece", NOBODY, f"SELECT FROM log.event_{{{kind}}}_0"),
        ("adds to its piece", NOBODY, f"INSERT INTO log.event_{{{kind}}}_0 SELECT id, 9, 9, 1, 1, now(), 's', 't', '', '' FROM log.shard WHERE kind = '{kind}'"),
        ("empties its piece", NOBODY, f"TRUNCATE log.event_{{{kind}}}_0"),
    ):  # fmt: skip
        yield Deed(f"{kind}: {what}", sql, allowed)


def of_schema(schema: str) -> Iterator[Deed]:
    """What there is to do with derived tables."""
    own = services(lambda r: schema in r.fills)
    looks = own | services(lambda r: bool(own & {*r.looks_at}))
    for what, allowed, sql in (
        ("reads", looks, f"SELECT FROM {schema}.tally"),
        ("adds", own, f"INSERT INTO {schema}.tally VALUES (2)"),
        ("changes", own, f"UPDATE {schema}.tally SET n = 3"),
        ("deletes", own, f"DELETE FROM {schema}.tally"),
        ("empties", own, f"TRUNCATE {schema}.tally"),
        ("makes a table", own, f"CREATE TABLE {schema}.other (n integer)"),
        ("drops a table", own, f"DROP TABLE {schema}.tally"),
        ("drops", own, f"DROP SCHEMA {schema} CASCADE"),
        ("renames", own, f"ALTER SCHEMA {schema} RENAME TO {schema}_old"),
        ("makes the next", services(lambda r: bool(r.fills)), f"CREATE SCHEMA {schema}_next"),
        ("notes a version", own, f"INSERT INTO log.projected VALUES ('{schema}_next', 1)"),
        ("forgets a version", own, f"DELETE FROM log.projected WHERE name = '{schema}'"),
        ("begins a cursor", own, f"INSERT INTO log.projection VALUES ('{schema}_next', 1, 'schedd.a')"),
    ):
        yield Deed(f"{schema}: {what}", sql, allowed)


def of_the_whole() -> Iterator[Deed]:
    """What is about no shard and no schema."""
    archives, nobody = services(lambda r: r.archives), NOBODY
    for what, allowed, sql in (
        ("reads the archive", frozenset(RIGHTS), "SELECT count(*) FROM log.archive"),
        ("adds to the archive", archives, f"INSERT INTO log.archive VALUES (1, {PIECE})"),
        ("changes the archive", nobody, "UPDATE log.archive SET events_file = ''"),
        ("takes from the archive", nobody, "DELETE FROM log.archive"),
        ("reads migrations", frozenset(RIGHTS), "SELECT FROM log.migration"),
        ("notes a migration", nobody, "INSERT INTO log.migration (component, name) VALUES ('x', 'y')"),
        ("forgets a migration", nobody, "DELETE FROM log.migration"),
        ("makes a shard that looks like another's", nobody, "INSERT INTO log.shard (name, kind, epoch, owner, piece_events) VALUES ('other.x', 'schedd', 1, 'x', 64)"),
        ("makes a table in the log", nobody, "CREATE TABLE log.mine (n integer)"),
        ("makes a function in the log", nobody, "CREATE FUNCTION log.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'"),
        ("changes a table", nobody, "ALTER TABLE log.event ADD mine integer"),
        ("turns the rows' guard off", nobody, "ALTER TABLE log.event DISABLE ROW LEVEL SECURITY"),
        ("goes round the rows' guard", nobody, "SET row_security = off; SELECT FROM log.event"),
        ("adds a policy", nobody, "CREATE POLICY mine ON log.event USING (true)"),
        ("drops a policy", nobody, "DROP POLICY readers ON log.event"),
        ("drops the log", nobody, "DROP SCHEMA log CASCADE"),
        ("empties the log", nobody, "TRUNCATE log.event"),
        ("makes a temporary table", nobody, "CREATE TEMPORARY TABLE mine (n integer)"),
        ("makes a table for all", nobody, "CREATE TABLE public.mine (n integer)"),
        ("makes a role", nobody, "CREATE ROLE mine"),
        ("becomes the owner", nobody, "SET ROLE kettle"),
        ("becomes one that may do more", nobody, "SET ROLE pg_write_all_data"),
        ("changes a password", nobody, "ALTER ROLE kettle PASSWORD 'x'"),
        ("gives rights away", nobody, "GRANT SELECT ON log.event TO PUBLIC; SELECT FROM pg_class, aclexplode(relacl) a WHERE pg_class.oid = 'log.event'::regclass AND a.grantee = 0"),
        ("reads passwords", nobody, "SELECT FROM pg_authid"),
        ("reads files", nobody, "SELECT pg_read_file('postgresql.conf')"),
        ("copies from a file", nobody, "COPY log.event FROM '/etc/passwd'"),
        ("runs a program", nobody, "COPY (SELECT 1) TO PROGRAM 'cat > /dev/null'"),
        ("ends connections", nobody, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'kettle'"),
        ("reloads the server's settings", nobody, "SELECT pg_reload_conf()"),
        ("changes the server's settings", nobody, "ALTER SYSTEM SET fsync = off"),
        ("loads code", nobody, "LOAD 'pltcl'"),
        ("drops the database", nobody, "DROP DATABASE kettle"),
    ):  # fmt: skip
        yield Deed(what, sql, allowed)


DEEDS: Final = [
    *(deed for kind in KINDS for deed in of_kind(kind)),
    *(deed for schema in SCHEMAS for deed in of_schema(schema)),
    *of_the_whole(),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(template: Path) -> AsyncIterator[EmbeddedPostgres]:
    """
    A database with the roles of a pool, in which something of everything stands; made by its owner, as before
    roles.
    """
    with server_directory() as directory:
        async with (
            EmbeddedPostgres(directory / "postgres", throwaway=True, template=template) as server,
            Database.connect(server.dsn) as database,
        ):
            await database.run(migrate)
            log = PgLog(database, piece_events=1 << 23)
            for kind in KINDS:
                await begin(log, f"{kind}.a")
            async with database.connection() as connection:
                for schema in SCHEMAS:
                    await connection.execute(f"CREATE SCHEMA {schema} CREATE TABLE tally (n integer)")
                    await connection.execute(f"INSERT INTO {schema}.tally VALUES (1)")
                    await connection.execute("INSERT INTO log.projected VALUES ($1, 1)", schema)
                await connection.execute("INSERT INTO log.projection SELECT 'jobs', 1, name FROM log.shard")
                await connection.execute(f"INSERT INTO log.archive VALUES (0, {PIECE})")
                await connection.execute("INSERT INTO log.working_set SELECT id, 's', 1, '' FROM log.shard")
                await connection.execute(
                    "INSERT INTO log.command SELECT id, 'c', 1, now(), '' FROM log.shard"
                )
            await give(server, database)
            yield server


async def begin(log: PgLog, shard: str) -> None:
    tenure = await log.take(shard, owner="me")
    entry = Entry("s", 1, "t/1", b"")
    await log.append(Frame(shard, tenure.epoch, tenure.frame + 1, tenure.head + 1, 0, [entry]))


async def give(server: EmbeddedPostgres, database: Database) -> None:
    names = {service: service_roles.role_name(server.database, service) for service in RIGHTS}
    passwords = {service: server.password_of(name) for service, name in names.items()}
    await database.run(lambda connection: service_roles.give(connection, passwords))


def dsn(server: EmbeddedPostgres, service: str) -> str:
    return server.dsn_as(service_roles.role_name(server.database, service))


class Trying:
    """One connection, and the numbers of the shards."""

    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]", numbers: Mapping[str, int]) -> None:
        self._connection = connection
        self._numbers = numbers

    @classmethod
    @asynccontextmanager
    async def as_role(cls, dsn: str) -> AsyncGenerator["Trying"]:
        connection = await asyncpg.connect(dsn)
        try:
            rows = await connection.fetch("SELECT kind, id FROM log.shard")
            yield cls(connection, {str(row["kind"]): row["id"] for row in rows})
        finally:
            await connection.close()

    async def does(self, deed: Deed) -> bool:
        """Whether a statement does something; it is undone."""
        transaction = self._connection.transaction()
        alone = deed.what in ALONE
        if not alone:
            await transaction.start()
        try:
            said = await self._connection.execute(deed.sql.format(**self._numbers))
        except (asyncpg.InsufficientPrivilegeError, asyncpg.RaiseError):
            return False
        finally:
            if not alone:
                await transaction.rollback()
        return not said.endswith(" 0")


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("service", RIGHTS)
async def test_a_service_does_what_is_declared_and_nothing_else(
    service: str, server: EmbeddedPostgres
) -> None:
    """Every deed with every table, shard and schema, and what attackers of databases try."""
    async with Trying.as_role(dsn(server, service)) as trying:
        done = [deed.what for deed in DEEDS if await trying.does(deed)]
    assert [deed.what for deed in DEEDS if service in deed.allowed] == done


@pytest.mark.asyncio(loop_scope="module")
async def test_the_owner_may_do_all_of_it(server: EmbeddedPostgres) -> None:
    """
    So that each statement of the matrix would do something if it were not refused; only what nobody may do is
    refused.
    """
    async with Trying.as_role(server.dsn) as trying:
        refused = [deed.what for deed in DEEDS if deed.what not in HURTS and not await trying.does(deed)]
    assert [f"{kind}: {what}" for kind in KINDS for what in ("fills its tables", "drops a piece")] == refused


def test_the_declaration_is_about_the_services_and_tables_that_there_are() -> None:
    """Each service with a database has rights, and each projection somebody who fills it."""
    assert NEEDS_DATABASE | {"archiver"} == RIGHTS.keys()
    filled = [schema for rights in RIGHTS.values() for schema in rights.fills]
    assert sorted([*PROJECTIONS, "accounting"]) == sorted(filled) == sorted(SCHEMAS)
    assert sorted(KINDS) == sorted(rights.writes for rights in RIGHTS.values() if rights.writes)


async def test_rights_can_be_given_again(directory: Path, template: Path) -> None:
    """And tell of which release they are."""
    async with (
        EmbeddedPostgres(directory / "postgres", throwaway=True, template=template) as server,
        Database.connect(server.dsn) as database,
    ):
        await database.run(migrate)
        assert "" == await database.run(service_roles.given)
        for _ in range(2):
            await give(server, database)
            assert service_roles.version() == await database.run(service_roles.given)
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(
                server.dsn_as("kettle_iam").partition("?")[0].replace("@", ":wrong@"),
                host=str(directory / "postgres" / "socket"),
            )


def test_no_password_is_in_the_script() -> None:
    """
    A server that writes a failed statement into its log has what checks a password there, another each time, and not the
    password.
    """
    passwords = {service: secrets.token_hex(32) for service in RIGHTS}
    script, again = (service_roles.statements("kettle", passwords=passwords) for _ in range(2))
    assert [] == [service for service, password in passwords.items() if password in script]
    made = [set(re.findall(r"PASSWORD 'SCRAM-SHA-256\$\S+'", each)) for each in (script, again)]
    assert [len(RIGHTS)] * 2 == [len(each) for each in made]
    assert not made[0] & made[1]


async def test_an_owner_writes_and_recalls_with_its_role(directory: Path, template: Path) -> None:
    """
    Taking a shard, appending, answering, checkpoints, and new pieces; what belongs to another shard is
    refused.
    """
    async with EmbeddedPostgres(directory / "postgres", throwaway=True, template=template) as server:
        async with Database.connect(server.dsn) as database:
            await database.run(migrate)
            await give(server, database)
        async with PgLog.connect(dsn(server, "schedd"), piece_events=4) as log:
            tenure = await log.take("schedd.a", owner="me")
            for n in range(1, 8):
                entries = [Entry(f"job/{n}", 1, "t/1", b""), Entry(f"job/{n}", 2, "t/1", b"")]
                frame = Frame("schedd.a", tenure.epoch, n, 2 * n - 1, 0, entries)
                await log.append(frame, [Answered(id=str(n), frame=n, reply=b"")])
            assert 7 == len([frame async for frame in log.read("schedd.a")])
            assert 7 == len(await log.answers("schedd.a", newest=9))
            await log.forget_answers("schedd.a", keep=2)
            assert 2 == len(await log.answers("schedd.a", newest=9))
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await log.take("negotiator", owner="me")


async def test_tables_that_the_pools_account_rebuilds_stay_those_of_accounting(
    directory: Path, template: Path
) -> None:
    """And the gateway, which only reads, reads the new ones."""
    async with EmbeddedPostgres(directory / "postgres", throwaway=True, template=template) as server:
        async with Database.connect(server.dsn) as database:
            await database.run(migrate)
            await give(server, database)
            jobs = PROJECTIONS["jobs"]
            async with PgLog.connect(dsn(server, "accounting")) as log:
                await prepare(jobs(), log.database, [log])
            await rebuild(jobs(), database, [PgLog(database)])
        async with PgLog.connect(dsn(server, "accounting")) as log:
            assert 0 == await PgCursors(log.database).cursor("jobs", jobs().version, "schedd.a")
            await rebuild(jobs(), log.database, [log])
        async with Database.connect(dsn(server, "gateway")) as reading:
            assert 0 == await reading.run(lambda c: c.fetchval("SELECT count(*) FROM jobs.live"))


async def test_an_owner_who_is_no_superuser_rebuilds_as_well(directory: Path, template: Path) -> None:
    """A site makes the roles as a superuser, in a database that belongs to the pool's own role."""
    async with EmbeddedPostgres(
        directory / "postgres", throwaway=True, template=template, database="site"
    ) as server:
        made = f"CREATE ROLE owner LOGIN PASSWORD '{server.password_of('owner')}'"
        jobs = PROJECTIONS["jobs"]
        async with Database.connect(server.dsn) as database:
            await database.run(lambda c: c.execute(f"{made}; ALTER DATABASE site OWNER TO owner"))
            async with PgLog.connect(server.dsn_as("owner")) as log:
                await give(server, database)
                async with PgLog.connect(dsn(server, "accounting")) as of_accounting:
                    await prepare(jobs(), of_accounting.database, [of_accounting])
                    await rebuild(jobs(), log.database, [log])
                    cursors = PgCursors(of_accounting.database)
                    assert 0 == await cursors.cursor("jobs", jobs().version, "schedd.a")
                    await rebuild(jobs(), of_accounting.database, [of_accounting])


async def test_a_service_does_not_bring_an_old_schema_up_to_date(directory: Path, template: Path) -> None:
    """It says who does."""
    async with EmbeddedPostgres(directory / "postgres", throwaway=True, template=template) as server:
        async with Database.connect(server.dsn) as database:
            await database.run(migrate)
            await give(server, database)
            await database.run(lambda c: c.execute("DELETE FROM log.migration WHERE component = 'log'"))
        with pytest.raises(OldSchemaError, match="start the master of the pool"):
            async with PgLog.connect(dsn(server, "schedd")):
                pass


ALONE: Final = frozenset({"changes the server's settings", "drops the database"})
"""What is not possible in a transaction."""
HURTS: Final = ALONE | {
    "copies from a file",
    "ends connections",
    "reloads the server's settings",
    "loads code",
}
"""What would hurt the server, or needs what is no part of every server."""
