"""NATS and PostgreSQL: whether they are there, new enough, set as the log needs it, and of the same time."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kettle_services.cli.doctor.findings import Finding, good, note, problem, warning

NATS: Final = (2, 12)
POSTGRES: Final = 14
CLOCK_S: Final = 2.0
"""Clocks that differ by more make times of events hard to read; leases do not depend on them."""
CLOCK_WRONG_S: Final = 300.0
_FEW_CONNECTIONS: Final = 32


class BusFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What NATS said."""

    url: str
    error: str = ""
    version: str = ""
    jetstream: bool = False
    max_payload: int = 0
    encrypted: bool = False
    local: bool = False
    """Whether it is reached on this machine alone."""
    asks: bool = True
    """Whether it wants to know who connects."""
    round_trip_s: float = 0.0


class DatabaseFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What PostgreSQL said."""

    where: str
    error: str = ""
    version: int = 0
    """As in 180001."""
    settings: Mapping[str, str] = {}
    clock_s: float = 0.0
    """By how much its clock is ahead of ours."""
    connections: int = 0
    recovering: bool = False
    pending: Sequence[str] = ()
    """Migrations that this version of Kettle knows and the database has not."""
    unknown: Sequence[str] = ()
    """Migrations that the database has and this version of Kettle does not know."""
    standbys: Sequence[str] = ()
    archiver_failed: str = ""
    """The file of the write-ahead log that could not be archived, if the last attempt failed."""


def bus_findings(facts: BusFacts) -> Iterator[Finding]:
    """What is to be said of NATS."""
    if facts.error:
        yield problem(
            "bus", facts.url, f"it cannot be reached: {facts.error}", "kettle status; else start the server"
        )
        return
    version = tuple(int(part) for part in facts.version.split("-")[0].split(".")[:2] if part.isdecimal())
    if version < NATS:
        what = f"NATS {facts.version} is older than {'.'.join(map(str, NATS))}: entries of buckets would not expire"
        yield problem("versions", facts.url, what, "upgrade the server")
    else:
        yield good("versions", facts.url, f"NATS {facts.version}")
    if not facts.jetstream:
        yield problem(
            "bus", facts.url, "it has no JetStream", "start it with jetstream { } in its configuration"
        )
    if not facts.asks:
        yield problem(
            "bus",
            facts.url,
            "it lets everybody in, with all rights",
            "give it credentials: docs/how-to/run-against-your-own-servers.md",
        )
    if not facts.encrypted and not facts.local:
        yield warning("tls", facts.url, "connections are not encrypted", "docs/how-to/encrypt-connections.md")
    if facts.max_payload < 1 << 20:
        what = f"max_payload is {facts.max_payload}: large commands come in many parts"
        yield note("bus", facts.url, what, "max_payload: 8MB")
    yield good("bus", facts.url, f"answers in {facts.round_trip_s * 1000:.0f} ms")


def database_findings(facts: DatabaseFacts) -> Iterator[Finding]:
    """What is to be said of PostgreSQL."""
    if facts.error:
        yield problem(
            "database",
            facts.where,
            f"it cannot be reached: {facts.error}",
            "kettle status; else start the server",
        )
        return
    if facts.version // 10000 < POSTGRES:
        what = f"PostgreSQL {facts.version // 10000} is older than {POSTGRES}"
        yield problem("versions", facts.where, what, "upgrade the server")
    else:
        yield good("versions", facts.where, f"PostgreSQL {facts.version // 10000}.{facts.version % 10000}")
    yield from _durable(facts)
    yield from _clock(facts)
    if facts.recovering:
        yield problem(
            "database",
            facts.where,
            "it is a standby, and takes no writes",
            "name the primary in database_url",
        )
    if facts.connections < _FEW_CONNECTIONS:
        what = f"max_connections is {facts.connections}: services and people may find none"
        yield warning("database", facts.where, what, "raise max_connections to 64")
    if facts.pending:
        what = f"its schema lacks {', '.join(facts.pending)}"
        yield warning("schema", facts.where, what, "kettle upgrade check says what to do")
    if facts.unknown:
        what = f"a newer Kettle has changed its schema: {', '.join(facts.unknown)}"
        yield warning(
            "schema", facts.where, what, "upgrade this host; kettle upgrade check says whether it may serve"
        )
    if facts.archiver_failed:
        what = f"{facts.archiver_failed} of the write-ahead log was not archived: the disk fills, and no return to now is possible"
        yield problem("database", facts.where, what, "look at archive_command and its target")
    for each in facts.standbys:
        yield note("database", facts.where, f"a standby follows: {each}")


def _durable(facts: DatabaseFacts) -> Iterator[Finding]:
    wrong = [
        name
        for name, bad in (("fsync", {"off"}), ("full_page_writes", {"off"}), ("synchronous_commit", {"off"}))
        if facts.settings.get(name, "on") in bad
    ]
    for name in wrong:
        what = f"{name} = off: after a crash of the machine the log may lack what was acknowledged"
        yield problem("durability", facts.where, what, f"{name} = on")
    if not wrong:
        yield good("durability", facts.where, "what is acknowledged is on the disk")


def _clock(facts: DatabaseFacts) -> Iterator[Finding]:
    yield clock_finding("the database", facts.where, facts.clock_s)


def clock_finding(whose: str, where: str, ahead_s: float) -> Finding:
    """What is to be said of a clock that is so many seconds ahead of ours."""
    off = abs(ahead_s)
    what = (
        f"the clock of {whose} is {off:.1f} s {'ahead of' if ahead_s > 0 else 'behind'} that of this machine"
    )
    if off > CLOCK_WRONG_S:
        return problem("clocks", where, what, "set the clock by NTP: tokens and certificates are refused")
    if off > CLOCK_S:
        return warning("clocks", where, what, "set both clocks by NTP (chronyc tracking)")
    return good("clocks", where, f"the clock of {whose} agrees with that of this machine")
