"""How an iam begins."""

from kettle.faults import fault_point
from kettle.runtime import Runtime
from kettle.runtime.pool_connections import join_bus, join_log
from kettle.runtime.shard_ownership import own_shard
from kettle.storage import PgWorkingSet
from kettle_services.iam.domain.state import SHARD
from kettle_services.iam.people.heard_questions import hear
from kettle_services.iam.record import Record
from kettle_services.iam.settings import IamSettings


async def serve(rt: Runtime, settings: IamSettings) -> None:
    """Own the shard, answer over bus and HTTP, until the process is asked to stop."""
    heard = await hear(rt, settings)  # before anything else: the server asks once, and people wait for it
    # The web server and cryptography take long to load, and belong to a process that has nothing to fork.
    from kettle_services.iam.office import work

    log = await join_log(rt, settings)
    bus = await join_bus(rt, settings)
    shard = await own_shard(rt, settings, bus, log, SHARD)
    if shard is None:
        return
    if heard is not None:
        heard.take_charge()
    record = await Record.recall(log, PgWorkingSet(log.database), shard)
    fault_point("takeover.restored")
    await work(rt, settings, bus, record, heard)
