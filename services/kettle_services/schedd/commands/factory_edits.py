"""Changes of what was submitted: how fast the jobs of a cluster come into the queue."""

from typing import Final

import msgspec

from kettle.bus.ports import RefusedError
from kettle_services.schedd.commands.queue_management import command_id
from kettle_services.schedd.domain.authorization import may_manage
from kettle_services.schedd.domain.jobs import factory
from kettle_services.schedd.domain.jobs.factory import Factory
from kettle_services.schedd.domain.queue.fold import factory_stream
from kettle_services.schedd.queue.backlog import Backlog
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.ads import Ad
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.schedd import Edit, Edited
from kettle_wire.endpoint import Position
from kettle_wire.events import FactoryChanged
from kettle_wire.identity import Identity

_encode: Final = msgspec.msgpack.Encoder().encode


class FactoryEdits:
    """Answers `edit`."""

    def __init__(self, recorder: QueueRecorder, backlog: Backlog, settings: ScheddSettings) -> None:
        self._recorder = recorder
        self._backlog = backlog
        self._queue = recorder.queue
        self._settings = settings

    async def edit(self, request: Edit, caller: Identity) -> Edited:
        """
        Set attributes of a cluster, once per id; nothing is recorded if one of them cannot be set.

        `not_found`: there is no such cluster with jobs to be made; `denied`: it is another's, or the attribute is nobody's
        to set; `malformed`: the value is none for it.
        """
        if caller.kind != "user":
            raise RefusedError(
                RefusalCode.DENIED, f"{caller.name} is a service of the pool; only people edit jobs"
            )
        command = command_id(caller, "edit", request.id)
        if (first := self._recorder.shard.answer(command)) is not None:
            return msgspec.msgpack.decode(await first, type=Edited)
        changed = self._changed(request, caller.name)
        self._backlog.require_room()
        events = (
            [] if changed == self._queue.factory(request.cluster) else [self._event(request, changed, caller)]
        )
        shard = self._recorder.shard.name

        def reply(frame: int) -> Edited:
            return Edited(cluster=request.cluster, position=Position(shard, frame))

        frame = await self._recorder.record(
            [(factory_stream(request.cluster), event) for event in events],
            command=command,
            reply=lambda frame: _encode(reply(frame)),
        )
        return reply(frame)

    def _changed(self, request: Edit, person: str) -> Factory:
        number = request.cluster
        cluster, found = self._queue.clusters.get(number), self._queue.factory(number)
        if cluster is None:
            raise RefusedError(
                RefusalCode.NOT_FOUND, f"cluster {number} is not in the queue of {self._queue.schedd}"
            )
        if not may_manage(person, cluster.submitted.owner, self._settings.queue_super_users):
            raise RefusedError(RefusalCode.DENIED, f"cluster {number} is not yours")
        limits = _limits(request.attributes)
        if found is None:
            raise RefusedError(
                RefusalCode.REFUSED, f"all jobs of cluster {number} are made: there is nothing to pace"
            )
        return msgspec.structs.replace(found, **limits)

    def _event(self, request: Edit, changed: Factory, caller: Identity) -> FactoryChanged:
        return FactoryChanged(
            cluster=request.cluster,
            first=changed.made,
            limit=changed.limit,
            max_idle=changed.max_idle,
            paused=changed.paused,
            by=caller.name,
        )


def _limits(attributes: Ad) -> dict[str, int]:
    fields = {factory.LIMIT.lower(): "limit", factory.MAX_IDLE.lower(): "max_idle"}
    found: dict[str, int] = {}
    for name, value in attributes.items():
        if name.lower() not in fields:
            raise RefusedError(
                RefusalCode.DENIED,
                f"the attribute {name} cannot be edited; those that can are {factory.LIMIT} and {factory.MAX_IDLE}: "
                "remove the jobs and submit them anew",
            )
        if type(value) is not int or value < 1:
            raise RefusedError(RefusalCode.MALFORMED, f"{name} is a number of jobs, at least 1")
        found[fields[name.lower()]] = value
    if not found:
        raise RefusedError(RefusalCode.MALFORMED, "say which attribute is to have which value")
    return found
