"""
The audit of a pool's log, with everything that it can be compared to.

The one place outside of a schedd that uses the schedd's own fold: an auditor with a fold of its own would prove that two
programs agree, not that the working set is right.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from kettle.audit import AuditReport, Fold, check
from kettle.bus.nats import NatsBus
from kettle.cli.errors import CommandError
from kettle.client import PoolFile
from kettle.schedd.domain.queue import Queue
from kettle.wire.events import Event
from kettle.wire.identity import daemon
from kettle.wire.subjects import Subjects

ROLE = "audit"
"""The credential of the audit: it may read every shard's frames, and nothing else."""


async def audit(home: Path, *, full: bool = True, patience: float = 30.0) -> AuditReport:
    """
    Audit the log of the pool in `home`; raises AuditError if it cannot be read, CommandError if it is not said where.
    """
    pool = PoolFile.load(home)
    database = os.environ.get("KETTLE_DATABASE_URL") or pool.database_url
    if not database:
        raise CommandError(f"{home}/pool.json does not say where the database is; set KETTLE_DATABASE_URL")
    subjects = Subjects(pool.pool)
    async with NatsBus.connect(
        pool.nats_url,
        subjects=subjects,
        identity=daemon(ROLE),
        credentials=os.environ.get("KETTLE_NATS_CREDENTIALS") or str(home / "credentials" / f"{ROLE}.nk"),
        name="log check",
        patience=patience,
    ) as bus:
        return await check(database, bus, subjects=subjects, full=full, folds={"schedd": schedd_fold})


def schedd_fold(shard: str) -> Fold:
    """
    What the events of a schedd's shard make of its working set.
    """
    queue = Queue(shard.partition(".")[2])

    def fold(stream: str, event: Event, at: int) -> Iterable[tuple[str, bytes | None]]:
        return [(change.stream, change.state) for change in queue.apply(stream, event, at)]

    return fold
