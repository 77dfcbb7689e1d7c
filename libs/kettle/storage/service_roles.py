"""
A role of the database for each service, with the rights that it needs and no others.

`RIGHTS` is the declaration; the statements that give these rights, and the test that tries each of them, follow from it.
A role is named after the database and the service, as in `kettle_schedd`, because roles belong to a server and rights to a
database. Which rows somebody may write is decided by row-level security; who made the tables, and superusers, are exempt.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kettle.storage.database import Connection


class Rights(msgspec.Struct, frozen=True, kw_only=True):
    """What a service may do, besides knowing which shards and projections there are and how far they are."""

    writes: str = ""
    """The kind of the shards that it owns: it adds their events, and keeps their answers and working sets."""
    reads: tuple[str, ...] = ()
    """The kinds of other shards whose events it reads."""
    fills: tuple[str, ...] = ()
    """The schemas of derived tables that it makes, fills and rebuilds; they are its own."""
    looks_at: tuple[str, ...] = ()
    """The services whose derived tables it reads."""
    archives: bool = False
    """Whether it drops pieces of the log that the archive has."""


RIGHTS: Final[Mapping[str, Rights]] = {
    "schedd": Rights(writes="schedd"),
    "negotiator": Rights(writes="negotiator"),
    "collector": Rights(writes="collector"),
    "iam": Rights(writes="identity"),
    "dagman": Rights(writes="dagman"),
    "ce": Rights(writes="ce"),
    "sessions": Rights(writes="sessions"),
    "scaler": Rights(writes="scaler"),
    "accounting": Rights(
        reads=("collector", "negotiator", "scaler", "schedd"),
        fills=("accounting", "jobs", "machines", "negotiation"),
    ),
    "gateway": Rights(reads=("collector", "negotiator", "scaler", "schedd"), looks_at=("accounting",)),
    "archiver": Rights(
        reads=("ce", "collector", "dagman", "identity", "negotiator", "scaler", "schedd", "sessions"),
        archives=True,
    ),
}
"""By service. An archiver is no process of its own: accounting becomes it to move old events to files."""

COMPONENT: Final = "rights"
"""Under which `log.migration` notes the rights that a database has."""

_KNOWN: Final = ("archive", "migration", "projected", "projection", "shard")
"""Tables of the log that every service reads as a whole."""
_BY_ROW: Final = ("command", "event", "projected", "projection", "shard", "working_set")
"""Tables of the log of which it depends on the row who may change it."""
_ITERATIONS: Final = 1
_BEGINNING: Final = "substring({} FROM '^[[:alpha:]]*')"
"""The kind of a shard, by its name."""


def role_name(database: str, service: str) -> str:
    """The name of the role of a service in a database."""
    return f"{database}_{service}"


def statements(database: str, *, passwords: Mapping[str, str] | None = None) -> str:
    """
    What makes the roles of a database and gives them their rights, as a script for one transaction that may be repeated.

    `passwords`: by service, random ones; a new role without one cannot log in by a password yet.  None of them is in the script,
    which a server may write into its log if a statement fails.
    The script is for a superuser, and for a database whose schema is up to date.
    """
    return "\n".join(
        [
            *_script(database, passwords or {}),
            f"\nDELETE FROM log.migration WHERE component = {_literal(COMPONENT)};",
            f"INSERT INTO log.migration (component, name) VALUES ({_literal(COMPONENT)}, {_literal(version())});\n",  # noqa: S608 - both are ours
        ]
    )


def version() -> str:
    """What changes when the declaration or its statements do."""
    return hashlib.sha256("\n".join(_script("", {})).encode()).hexdigest()[:16]


async def given(connection: Connection) -> str:
    """The version of the rights that a database has; empty: none were given."""
    found = await connection.fetchval("SELECT name FROM log.migration WHERE component = $1", COMPONENT)
    return str(found or "")


async def give(connection: Connection, passwords: Mapping[str, str]) -> None:
    """Make the roles, and give them their rights and passwords, all or nothing."""
    database = str(await connection.fetchval("SELECT current_database()"))
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(hashtext('kettle.migrate'))")
        await connection.execute(statements(database, passwords=passwords))


def _script(database: str, passwords: Mapping[str, str]) -> Iterator[str]:
    roles = {service: role_name(database, service) for service in RIGHTS}
    for service, role in roles.items():
        yield from _made(role, passwords.get(service))
    yield from _beginning(_identifier(database), ", ".join(map(_identifier, roles.values())))
    for service, rights in RIGHTS.items():
        yield f"\n-- {service}"
        yield from _on_the_log(service, _identifier(roles[service]), rights)
        if rights.fills:
            readers = [roles[reader] for reader, other in RIGHTS.items() if service in other.looks_at]
            yield f"GRANT CREATE ON DATABASE {_identifier(database)} TO {_identifier(roles[service])};"
            yield from _on_schemas(roles[service], rights.fills, readers)
            yield from _also_for_the_owner(roles[service])


def _made(role: str, password: str | None) -> Iterator[str]:
    yield (
        f"DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = {_literal(role)}) THEN "
        f"CREATE ROLE {_identifier(role)} LOGIN; END IF; END $$;"
    )
    if password is not None:
        yield f"ALTER ROLE {_identifier(role)} PASSWORD {_literal(_verifier(password))};"


def _verifier(password: str) -> str:
    """
    What a server keeps of a password to check it by SCRAM-SHA-256, as RFC 5803 and PostgreSQL write it.

    What is random need not be stretched, which would only make every connection slower.
    """
    salt = secrets.token_bytes(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, _ITERATIONS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    served = hmac.digest(salted, b"Server Key", "sha256")
    salt64, stored64, served64 = (base64.b64encode(each).decode() for each in (salt, stored, served))
    return f"SCRAM-SHA-256${_ITERATIONS}:{salt64}${stored64}:{served64}"


def _beginning(database: str, roles: str) -> Iterator[str]:
    """
    In the log nobody has rights of an earlier release, and who may read a table reads all rows unless said
    otherwise.
    """
    yield "\nDO $$ DECLARE old record; BEGIN"
    yield "FOR old IN SELECT policyname, tablename FROM pg_policies WHERE schemaname = 'log' LOOP"
    yield "    EXECUTE format('DROP POLICY %I ON log.%I', old.policyname, old.tablename);"
    yield "END LOOP; END $$;"
    yield f"REVOKE CREATE, TEMPORARY ON DATABASE {database} FROM PUBLIC, {roles};"
    yield f"REVOKE ALL ON ALL TABLES IN SCHEMA log FROM {roles};"
    yield f"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA log FROM {roles};"
    yield f"GRANT CONNECT ON DATABASE {database} TO {roles};"
    yield f"GRANT USAGE ON SCHEMA log TO {roles};"
    yield from (f"GRANT SELECT ON log.{table} TO {roles};" for table in _KNOWN)
    for table in _BY_ROW:
        yield f"ALTER TABLE log.{table} ENABLE ROW LEVEL SECURITY;"
        yield f"CREATE POLICY readers ON log.{table} FOR SELECT USING (true);"


def _on_the_log(service: str, role: str, rights: Rights) -> Iterator[str]:
    reads = sorted({*rights.reads, *filter(None, [rights.writes])})
    if reads:
        yield f"GRANT SELECT ON log.event TO {role};"
        yield f"CREATE POLICY {service}_reads ON log.event AS RESTRICTIVE FOR SELECT TO {role} USING ({_shards(reads)});"
    if rights.writes:
        yield from _on_own_shards(service, role, rights.writes)
    if rights.fills:
        yield from _on_cursors(service, role, rights.fills)
    if rights.archives:
        yield f"GRANT EXECUTE ON FUNCTION log.drop_piece TO {role};"
        yield f"GRANT INSERT ON log.archive TO {role};"


def _on_own_shards(service: str, role: str, kind: str) -> Iterator[str]:
    own, is_own = _shards([kind]), f"kind = {_literal(kind)}"
    named = f"{is_own} AND {_BEGINNING.format('name')} = {_literal(kind)}"
    cursor = f"name = 'working_set' AND {_BEGINNING.format('shard')} = {_literal(kind)}"
    yield f"GRANT EXECUTE ON FUNCTION log.make_piece TO {role};"
    yield f"GRANT INSERT (name, kind, epoch, owner, piece_events) ON log.shard TO {role};"
    yield f"GRANT UPDATE (epoch, owner, head, frame) ON log.shard TO {role};"
    yield f"CREATE POLICY {service}_makes ON log.shard FOR INSERT TO {role} WITH CHECK ({named});"
    yield f"CREATE POLICY {service}_owns ON log.shard FOR UPDATE TO {role} USING ({is_own});"
    yield f"GRANT INSERT ON log.event TO {role};"
    yield f"CREATE POLICY {service}_adds ON log.event FOR INSERT TO {role} WITH CHECK ({own});"
    yield f"GRANT SELECT, INSERT, DELETE ON log.command TO {role};"
    yield f"GRANT SELECT, INSERT, UPDATE, DELETE ON log.working_set TO {role};"
    for table in ("command", "working_set"):
        yield f"CREATE POLICY {service}_reads ON log.{table} AS RESTRICTIVE FOR SELECT TO {role} USING ({own});"
        yield f"CREATE POLICY {service}_keeps ON log.{table} TO {role} USING ({own});"
    yield f"GRANT INSERT, UPDATE ON log.projection TO {role};"
    yield f"CREATE POLICY {service}_makes ON log.projection FOR INSERT TO {role} WITH CHECK ({cursor});"
    yield f"CREATE POLICY {service}_owns ON log.projection FOR UPDATE TO {role} USING ({cursor});"


def _on_cursors(service: str, role: str, schemas: Sequence[str]) -> Iterator[str]:
    names = _array([part for schema in schemas for part in (schema, f"{schema}_next")])
    for table in ("projection", "projected"):
        yield f"GRANT INSERT, UPDATE, DELETE ON log.{table} TO {role};"
        yield f"CREATE POLICY {service}_keeps ON log.{table} TO {role} USING (name = ANY ({names}));"


def _on_schemas(role: str, schemas: Sequence[str], readers: Sequence[str]) -> Iterator[str]:
    """
    The schemas that a service makes are its own, also those that were made in its name before; others look at
    them.
    """
    names = _array([part for schema in schemas for part in (schema, f"{schema}_next", f"{schema}_old")])
    made = f"FROM pg_namespace n WHERE n.nspname = ANY ({names})"
    yield "DO $$ DECLARE s text; t text; BEGIN"
    yield f"FOR s IN SELECT n.nspname {made} LOOP"
    yield f"    EXECUTE format('ALTER SCHEMA %I OWNER TO %I', s, {_literal(role)});"
    yield "    FOR t IN SELECT relname FROM pg_class WHERE relnamespace = s::regnamespace AND relkind IN ('r', 'p') LOOP"
    yield f"        EXECUTE format('ALTER TABLE %I.%I OWNER TO %I', s, t, {_literal(role)});"
    yield "    END LOOP;"
    for reader in readers:
        yield f"    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', s, {_literal(reader)});"
        yield f"    EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO %I', s, {_literal(reader)});"
    yield "END LOOP; END $$;"
    for reader in readers:
        # A rebuild makes the schema again: so reading is granted on all that this role will make.
        given = f"ALTER DEFAULT PRIVILEGES FOR ROLE {_identifier(role)} GRANT"
        yield f"{given} USAGE ON SCHEMAS TO {_identifier(reader)};"
        yield f"{given} SELECT ON TABLES TO {_identifier(reader)};"


def _also_for_the_owner(role: str) -> Iterator[str]:
    """Who owns the log, and is no superuser, rebuilds the schemas of this role as this role."""
    owner = "SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'log'"
    yield f"DO $$ BEGIN EXECUTE format('GRANT %I TO %I', {_literal(role)}, ({owner})); END $$;"


def _shards(kinds: Sequence[str]) -> str:
    """
    Whether a row belongs to a shard of these kinds; which shards these are is looked up once a statement.
    """
    return f"shard = ANY (ARRAY (SELECT id FROM log.shard WHERE kind = ANY ({_array(kinds)})))"  # noqa: S608 - no arguments here


def _array(texts: Sequence[str]) -> str:
    return f"ARRAY[{', '.join(map(_literal, texts))}]"


def _identifier(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
