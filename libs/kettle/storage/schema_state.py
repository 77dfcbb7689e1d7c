"""Which steps the schema of a database has, and which of them this release knows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from kettle.storage.database import Connection
from kettle.storage.queries import SQL

if TYPE_CHECKING:
    import asyncpg

_BASE: Final = "schema"
_COMPONENT: Final = "log"


class Step(msgspec.Struct, frozen=True):
    """One migration that a database has not seen."""

    component: str
    name: str
    stage: Literal["pre", "post"]
    """`pre` runs before new services start, and old ones work with its result; `post` runs when no old service runs any more."""


class SchemaState(msgspec.Struct, frozen=True, kw_only=True):
    """How a database stands to this release."""

    made: bool
    """Whether there is a log in it at all."""
    pending: Sequence[Step]
    unknown: Sequence[str]
    """Steps that a newer release has made; what it made with `pre` an older one works with."""

    @property
    def contracted(self) -> list[str]:
        """The steps of a newer release after which this one cannot work."""
        return [name for name in self.unknown if "_post_" in name]


def known_steps() -> list[Step]:
    """The steps of this release, in order."""
    names = sorted(file.stem for file in (SQL / "migrations").glob("*_*_*.sql"))
    return [Step(_COMPONENT, name, "pre" if name.split("_")[1] == "pre" else "post") for name in names]


async def schema_state(connection: "Connection | asyncpg.Connection[asyncpg.Record]") -> SchemaState:
    """Compare; it only reads."""
    known = known_steps()
    if not await connection.fetchval("SELECT to_regclass('log.migration') IS NOT NULL"):
        return SchemaState(made=False, pending=known, unknown=[])
    rows = await connection.fetch("SELECT name FROM log.migration WHERE component = $1", _COMPONENT)
    done = {str(row["name"]) for row in rows}
    names = {step.name for step in known}
    return SchemaState(
        made=_BASE in done,
        pending=[step for step in known if step.name not in done],
        unknown=[f"{_COMPONENT}/{name}" for name in sorted(done - names - {_BASE})],
    )
