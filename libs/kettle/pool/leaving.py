"""How a machine that has joined leaves its pool: with its own credential it has that be invalid."""

from pathlib import Path
from typing import Final

from kettle.bus.nats import NatsBus
from kettle.bus.ports import BusError, BusUnavailableError, NotAcceptedError, ReplyTimeoutError
from kettle.client.connections.transport import new_id
from kettle.pool.joined_files import Record
from kettle.pool.joining import WORKER, JoinError
from kettle.retry.backoff import Backoff
from kettle.retry.deadline import Deadline
from kettle.retry.loop import Waits
from kettle.runtime import Settings
from kettle_wire.commands.iam import LEAVE, Leave
from kettle_wire.identity import daemon, worker
from kettle_wire.subjects import Subjects

_PATIENCE_S: Final = 20.0


async def say_good_bye(home: Path, record: Record) -> None:
    """
    Tell iam; nothing of the machine may run any more, for its connections end.

    Raises:
        JoinError: the pool could not be told.
    """
    settings = Settings.load("cli", environ={"KETTLE_HOME": str(home)})
    role, identity = WORKER, worker(record.worker)
    if record.joins == "schedd":
        role, identity = "schedd", daemon("schedd", record.worker)
    request, patience = Leave(id=new_id()), Deadline(_PATIENCE_S)
    waits = Waits(Backoff(first=0.05, longest=1.0))
    while True:
        try:
            async with NatsBus.connect(
                settings.nats_url,
                subjects=Subjects(settings.pool),
                identity=identity,
                credentials=str(home / "credentials" / f"{role}.creds"),
                ca=settings.nats_ca,
                patience=_PATIENCE_S,
            ) as bus:
                await bus.call(LEAVE, "iam", request, deadline=_PATIENCE_S)
        except NotAcceptedError:
            return  # the connection ended before the answer came: this is what was wanted
        except BusError as error:
            if not isinstance(error, (BusUnavailableError, ReplyTimeoutError)) or patience.passed:
                raise JoinError(
                    f"the pool {record.pool} could not be told, so nothing was removed: {error}; say it again, or have an "
                    f"administrator remove {record.worker}"
                ) from error
            await waits.wait()
        else:
            return
