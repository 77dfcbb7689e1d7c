"""The audit of a pool's log, with everything that it can be compared to."""

from collections.abc import Sequence
from pathlib import Path

from kettle.audit import AuditReport, AuditScope, Told, check
from kettle_services.cli.log.databases import archive_directory, databases
from kettle_services.cli.log.folds import WORKING_SETS
from kettle_services.cli.log.live_events import audit_bus


async def audit(
    home: Path,
    *,
    full: bool = True,
    shards: Sequence[str] = (),
    sample: int = 0,
    seed: int = 0,
    patience: float = 30.0,
    told: Told | None = None,
) -> AuditReport:
    """
    Audit the log of the pool in `home`, see `Wanted`; raises AuditError if it cannot be read, CommandError if its place
    is not known.
    """
    found = databases(home)
    wanted = AuditScope(
        full=full,
        shards=frozenset(shards),
        folds=WORKING_SETS,
        sample=sample,
        seed=seed,
        archive=archive_directory(home),
    )
    async with audit_bus(home, patience=patience) as bus:
        return await check(found, bus, subjects=bus.subjects, wanted=wanted, told=told)
