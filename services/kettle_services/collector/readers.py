"""
Consumers of streams for people and visitors: of published events of their own jobs, and of reports to themselves.

Who makes a consumer says where JetStream delivers, with JetStream's own rights; so guests of the bus make none.
"""

from kettle.bus.jetstream import Consumer, NotFoundError
from kettle.bus.nats import NatsBus
from kettle.bus.ports import BusUnavailableError, RefusedError, ReplyTimeoutError
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.collector import MakeReader, Reader
from kettle_wire.identity import Identity
from kettle_wire.subjects import Subjects


class Readers:
    """Makes them."""

    def __init__(self, bus: NatsBus, subjects: Subjects) -> None:
        self._bus = bus
        self._subjects = subjects

    async def make(self, request: MakeReader, caller: Identity) -> Reader:
        """`denied`: it is not the caller's to read; `not_found`: there is no such stream now."""
        if not self._is_own(request, caller):
            raise RefusedError(
                RefusalCode.DENIED,
                f"{caller.name} may not read {request.subject} of {request.stream} as {request.name}",
            )
        wanted = Consumer(
            name=request.name,
            subject=request.subject,
            durable=request.durable,
            batch=request.batch,
            after=request.after,
            since=request.since,
        )
        try:
            return Reader(pending=await self._bus.make_consumer(request.stream, wanted))
        except NotFoundError as error:
            raise RefusedError(RefusalCode.NOT_FOUND, str(error)) from error
        except (BusUnavailableError, ReplyTimeoutError) as error:
            raise RefusedError(RefusalCode.UNAVAILABLE, str(error)) from error

    def _is_own(self, request: MakeReader, caller: Identity) -> bool:
        subjects = self._subjects
        if caller.kind == "visitor":
            own = (
                subjects.work_stream,
                subjects.work_of(caller.name),
                subjects.work_reader(caller.name),
                True,
            )
            return own == (request.stream, request.subject, request.name, request.durable)
        mine, asked = subjects.monitor(caller.name).split("."), request.subject.split(".")
        narrower = len(mine) == len(asked) and all(
            part in {"*", given} for part, given in zip(mine, asked, strict=True)
        )
        return request.stream == subjects.monitor_stream and narrower and ">" not in asked
