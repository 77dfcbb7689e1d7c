"""What has to be known before an upgrade, judged: facts in, findings out."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from kettle.storage.schema_state import SchemaState
from kettle_services.cli.doctor.findings import Finding, good, note, problem, warning

_WHERE: Final = "the database"


class ReadinessFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What was read."""

    version: str
    """Of this program, to which the pool would be upgraded."""
    schema: SchemaState
    unknown_types: Sequence[tuple[str, str]] = ()
    """Shards with a type of event that this version does not know, and that type."""
    hosts: Sequence[tuple[str, str]] = ()
    """The hosts of the pool, each with a version that runs there; empty: nobody could be asked."""
    rebuilds: Sequence[str] = ()
    """Projections whose tables are of another version than this one's."""
    stopped: Sequence[str] = ()
    """Projections that have stopped, with the reason."""


def readiness(facts: ReadinessFacts) -> Iterator[Finding]:
    """Whether this version can serve the pool, and what it takes."""
    yield from _schema(facts.schema, facts.version)
    for shard, kind in facts.unknown_types:
        what = f"events of type {kind} are recorded, which Kettle {facts.version} does not know: it would refuse to serve {shard}"
        yield problem("events", shard, what, "install the version that runs there, or a newer one")
    if not facts.unknown_types:
        yield good("events", _WHERE, f"Kettle {facts.version} can read everything that was recorded last")
    yield from _hosts(facts)
    for each in facts.rebuilds:
        what = f"the tables of {each} are of another version: accounting builds new ones beside them"
        yield note("projections", _WHERE, what, "nothing; kettle log projections shows how far they are")
    for each in facts.stopped:
        yield warning(
            "projections",
            _WHERE,
            f"it has stopped: {each}",
            "repair it before the upgrade: kettle log projections",
        )


def _schema(schema: SchemaState, version: str) -> Iterator[Finding]:
    if not schema.made:
        yield note("schema", _WHERE, "there is no log yet", "the first start makes it")
        return
    if schema.contracted:
        what = f"a newer release has finished its upgrade ({', '.join(schema.contracted)}): Kettle {version} cannot serve it"
        yield problem("schema", _WHERE, what, "install the newer release here, or restore a backup of before")
    elif schema.unknown:
        what = f"a newer release has begun its upgrade ({', '.join(schema.unknown)}): Kettle {version} works with that"
        yield note("schema", _WHERE, what, "nothing, as long as kettle upgrade finish was not said there")
    pre = [step.name for step in schema.pending if step.stage == "pre"]
    post = [step.name for step in schema.pending if step.stage == "post"]
    if pre:
        yield note(
            "schema", _WHERE, f"steps before: {', '.join(pre)}", "nothing: the first new master takes them"
        )
    if post:
        what = f"steps that older services cannot work with: {', '.join(post)}"
        yield note("schema", _WHERE, what, "when every host is new: kettle upgrade finish")
    if not schema.pending and not schema.unknown:
        yield good("schema", _WHERE, "its schema is that of this version")


def _hosts(facts: ReadinessFacts) -> Iterator[Finding]:
    others = sorted({version for _, version in facts.hosts if version != facts.version})
    if not facts.hosts:
        what = "nobody says which versions run: the pool does not answer"
        yield note("hosts", "the pool", what, "kettle status")
    for host, version in facts.hosts:
        if version == facts.version:
            yield good("hosts", host, f"it runs Kettle {version}")
        else:
            yield note("hosts", host, f"it runs Kettle {version}", "upgrade it, then kettle restart")
    if len(others) > 1:
        what = f"there are several older versions: {', '.join(others)}"
        yield warning(
            "hosts",
            "the pool",
            what,
            "finish the upgrade before, so that only two versions run beside each other",
        )
