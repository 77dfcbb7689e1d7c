"""Values that people keep under keys of their own."""

import time
from typing import Any, Final

from kettle.bus.ports import Served
from kettle.eventsourcing.command_pipeline import CommandPipeline, Decision
from kettle_services.iam.commands.deciding import recorded, refusing
from kettle_services.iam.domain import kept_values
from kettle_services.iam.domain.kept_values import NONE, KeptValues
from kettle_services.iam.record import Record
from kettle_wire.commands import key_values
from kettle_wire.commands.iam import Recorded
from kettle_wire.identity import Identity


class KeyValueCommands:
    """Keeps them; each person sees nobody else's."""

    def __init__(self, record: Record) -> None:
        self._record: Final = record

    def served(self, pipeline: CommandPipeline) -> list[Served[Any, Any]]:
        """The endpoints with their handlers."""
        return [
            pipeline.command(key_values.SET_VALUE, self.set),
            pipeline.command(key_values.REMOVE_VALUES, self.remove),
            pipeline.query(key_values.GET_VALUE, self.get),
            pipeline.query(key_values.LIST_VALUES, self.list),
        ]

    async def set(self, request: key_values.SetValue, caller: Identity) -> Decision[Recorded]:
        """
        Keep one; `refused`: the key has another value than expected; `unacceptable`: there would be too much.
        """
        owner = caller.name
        with refusing():
            events = kept_values.decide_set(self._of(owner), request, owner=owner, now=time.time())
        return recorded([(kept_values.stream(owner), event) for event in events])

    async def remove(self, request: key_values.RemoveValues, caller: Identity) -> Decision[Recorded]:
        """Keep some no longer; `not_found`."""
        owner = caller.name
        with refusing():
            events = kept_values.decide_removal(self._of(owner), request, owner=owner, now=time.time())
        return recorded([(kept_values.stream(owner), event) for event in events])

    async def get(self, request: key_values.GetValue, caller: Identity) -> key_values.KeptValue:
        """One of the caller's; `not_found`."""
        with refusing():
            return key_values.KeptValue(value=kept_values.found(self._of(caller.name), request.key))

    async def list(self, request: key_values.ListValues, caller: Identity) -> key_values.Values:
        """The caller's own."""
        own = sorted(self._of(caller.name).values.items())
        return key_values.Values(values={key: value for key, value in own if key.startswith(request.prefix)})

    def _of(self, owner: str) -> KeptValues:
        return self._record.register.find(KeptValues, kept_values.stream(owner)) or NONE
