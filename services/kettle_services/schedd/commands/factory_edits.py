"""Changes of what was submitted: how fast the jobs of a cluster come into the queue."""

from collections import Counter

import msgspec

from kettle.bus.ports import RefusedError
from kettle.eventsourcing.command_pipeline import Decision
from kettle_services.schedd.commands.deeds import DeedsForOthers
from kettle_services.schedd.domain.authorization import may_manage, refusal
from kettle_services.schedd.domain.jobs import factory
from kettle_services.schedd.domain.jobs.factory import Factory
from kettle_services.schedd.domain.queue.fold import factory_stream
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.ads import Ad
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.schedd import EDIT, Edit, Edited, FactoryOutcome
from kettle_wire.events import FactoryChanged
from kettle_wire.identity import Identity


class FactoryEdits:
    """Decides `edit`."""

    def __init__(self, recorder: QueueRecorder, settings: ScheddSettings, deeds: DeedsForOthers) -> None:
        self._queue = recorder.queue
        self._settings = settings
        self._deeds = deeds

    async def edit(self, request: Edit, caller: Identity) -> Decision[Edited]:
        """
        Set attributes of a cluster; nothing is recorded if one of them cannot be set.

        `not_found`: there is no such cluster with jobs to be made; `denied`: it is another's, or the attribute is nobody's
        to set; `malformed`: the value is none for it.
        """
        number = request.cluster
        changed = self._changed(request, caller.name)
        unchanged = changed == self._queue.factory(number)
        return Decision(
            lambda position: Edited(cluster=number, position=position),
            [] if unchanged else [(factory_stream(number), self._event(request, changed, caller))],
            effect=self._deeds.of(
                caller,
                EDIT,
                f"set {', '.join(sorted(request.attributes))}",
                Counter(),
                [FactoryOutcome(number, "done", changed.unmade)],
            ),
        )

    def _changed(self, request: Edit, person: str) -> Factory:
        number = request.cluster
        cluster, found = self._queue.clusters.get(number), self._queue.factory(number)
        if cluster is None:
            raise RefusedError(
                RefusalCode.NOT_FOUND, f"cluster {number} is not in the queue of {self._queue.schedd}"
            )
        owner = cluster.submitted.owner
        if not may_manage(person, owner, self._settings.queue_super_users):
            raise RefusedError(RefusalCode.DENIED, refusal(person, f"edit cluster {number}", owner))
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
                "remove the jobs and submit them again",
            )
        if type(value) is not int or value < 1:
            raise RefusedError(RefusalCode.MALFORMED, f"{name} is a number of jobs, at least 1")
        found[fields[name.lower()]] = value
    if not found:
        raise RefusedError(RefusalCode.MALFORMED, "say which attribute is to have which value")
    return found
