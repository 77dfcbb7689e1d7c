"""
A question about the queue by a command that asks it and ends: see `kettle.bus.single_request`.

Whatever is out of the ordinary is nobody's answer, and `Client` is asked instead: it waits, repeats and explains.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kettle.bus.single_request import UnusualError, ask_once
from kettle.client.connections.pool_file import PoolFile, locate
from kettle_wire.commands.queue import QUERY_JOBS, JobAds, QueryJobs
from kettle_wire.identity import user
from kettle_wire.subjects import Subjects

LONGEST_S: Final = 5.0
"""How long an answer is waited for in this way."""


def query_jobs(
    wanted: Callable[[PoolFile], QueryJobs], *, home: Path | None, name: str, patience: float
) -> JobAds | None:
    """
    The answer of the schedd `name`, or of the pool's own, to what is wanted of this pool; None: ask `Client`.

    Raises PoolNotFoundError: nothing says where the pool is.
    """
    pool = locate(os.environ, home=home)
    try:
        return ask_once(
            pool.nats_url,
            QUERY_JOBS,
            name or pool.schedd,
            wanted(pool),
            subjects=Subjects(pool.pool),
            identity=user(pool.user),
            credentials=pool.credentials,
            within=min(LONGEST_S, patience),
        )
    except UnusualError:
        return None
