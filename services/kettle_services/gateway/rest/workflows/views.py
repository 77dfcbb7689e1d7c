"""
The workflows that somebody looks at, each folded once for all who do.

The service that decides about workflows tells their events; what has come is remembered, so that the next question costs only what is new.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from kettle.bus.ports import Bus, RefusedError
from kettle.dag.view.figures import Fold, Picture, picture
from kettle.dag.view.layers import Placed, placed
from kettle.dag.view.reasons import Reasons
from kettle.dag.view.run_view import RunView
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.dagman import (
    FOLLOW_WORKFLOW,
    LONGEST_WAIT_S,
    FollowWorkflow,
    RecordedWorkflowEvent,
    WorkflowNews,
)
from kettle_wire.events import decode
from kettle_wire.events.workflow import WorkflowEvent, WorkflowStarted
from kettle_wire.workflows import node_count

MOST_NODES: Final = 1_000_000
_MOST: Final = 100
_WITHIN_S: Final = 15.0
_TURN_S: Final = 0.02
"""After so long others have their turn while events are folded."""


def event_of(recorded: RecordedWorkflowEvent) -> WorkflowEvent:
    """What was recorded."""
    event = decode(bytes(recorded.data))
    assert isinstance(event, WorkflowEvent), f"a workflow has a {type(event).__name__}"
    return event


class Watched:
    """One workflow, and what does not change of it."""

    def __init__(self, schedd: str, view: RunView) -> None:
        self.schedd: Final = schedd
        self.view: Final = view
        self._pictures: dict[Fold, tuple[Picture, Placed]] = {}
        self._reasons: Reasons | None = None

    @property
    def id(self) -> str:
        """As the interface names it."""
        return f"{self.view.started.workflow}@{self.schedd}"

    async def picture(self, fold: Fold) -> tuple[Picture, Placed]:
        """Its figures and their places."""
        found = self._pictures.get(fold)
        if found is None:
            found = self._pictures[fold] = await asyncio.to_thread(_drawn, self.view, fold)
        return found

    async def reasons(self) -> Reasons:
        """Why its nodes are where they are."""
        if self._reasons is None:
            self._reasons = await asyncio.to_thread(Reasons, self.view)
        return self._reasons


def _drawn(view: RunView, fold: Fold) -> tuple[Picture, Placed]:
    made = picture(view.plan, fold)
    return made, placed(made)


class _Kept:
    """A workflow by its place, before and after its first event is known."""

    def __init__(self, schedd: str, number: int) -> None:
        self.schedd: Final = schedd
        self.number: Final = number
        self.watched: Watched | None = None
        self.taking: Final = asyncio.Lock()
        self.coming: asyncio.Task[None] | None = None
        """Waits for the next event, for all who do."""

    @property
    def events(self) -> int:
        return self.watched.view.events if self.watched is not None else 0

    @property
    def is_over(self) -> bool:
        return self.watched is not None and self.watched.view.ended is not None


class WorkflowViews:
    """Knows them."""

    def __init__(self, bus: Bus, *, most_nodes: int = MOST_NODES) -> None:
        """`most_nodes`: of all workflows that are remembered together, and so of one."""
        self._bus = bus
        self._most_nodes = most_nodes
        self._kept: OrderedDict[tuple[str, int], _Kept] = OrderedDict()

    async def of(self, schedd: str, number: int) -> Watched:
        """
        A workflow as it is now.  Raises RefusedError (`not_found`): it has not begun; BusError: nobody tells.
        """
        kept = self._at(schedd, number)
        if not kept.is_over:
            await self._catch_up(kept, 0.0)
        return self._known(kept)

    async def after(self, schedd: str, number: int, events: int) -> int:
        """
        Wait until more than so many events are known of it, at most 20 s; how many there are.  Raises as `of` does.
        """
        kept = self._at(schedd, number)
        if kept.events <= events and not kept.is_over:
            if kept.coming is None or kept.coming.done():
                kept.coming = asyncio.create_task(self._catch_up(kept, LONGEST_WAIT_S))
            await asyncio.shield(kept.coming)  # others wait for it, too
            self._forget_some()
        return kept.events

    def is_over(self, schedd: str, number: int) -> bool:
        """Whether nothing happens to a workflow any more, as far as that is known."""
        return self._at(schedd, number).is_over

    async def news(self, schedd: str, number: int, after: int, *, wait: float) -> WorkflowNews:
        """The events behind so many, as they are recorded."""
        request = FollowWorkflow(workflow=number, after=after, wait=wait)
        return await self._bus.call(FOLLOW_WORKFLOW, schedd, request, deadline=wait + _WITHIN_S)

    def _at(self, schedd: str, number: int) -> _Kept:
        kept = self._kept.get((schedd, number))
        if kept is None:
            kept = self._kept[schedd, number] = _Kept(schedd, number)
        self._kept.move_to_end((schedd, number))
        while len(self._kept) > _MOST:
            self._kept.popitem(last=False)
        return kept

    async def _catch_up(self, kept: _Kept, wait: float) -> None:
        while True:
            after = kept.events
            news = await self.news(kept.schedd, kept.number, after, wait=wait)
            async with kept.taking:
                await self._take(kept, after, news.events)
            if news.complete:
                return
            wait = 0.0

    def _known(self, kept: _Kept) -> Watched:
        """Raises RefusedError: its first event is not committed yet."""
        if kept.watched is None:
            raise RefusedError(RefusalCode.NOT_FOUND, f"workflow {kept.number} is about to begin")
        self._forget_some()
        return kept.watched

    def _forget_some(self) -> None:
        """What was looked at longest ago, while there is too much, and the last one is not all of it."""
        nodes = {
            key: len(each.watched.view.states) if each.watched else 0 for key, each in self._kept.items()
        }
        total = sum(nodes.values())
        for key in list(self._kept)[:-1]:
            if total <= self._most_nodes:
                break
            total -= nodes[key]
            del self._kept[key]

    async def _take(self, kept: _Kept, after: int, events: Sequence[RecordedWorkflowEvent]) -> None:
        """Fold events; those that came twice, because two have asked, once."""
        began = time.monotonic()
        for recorded in events[kept.events - after :]:
            event, at = event_of(recorded), recorded.at / 1e6
            if kept.watched is None:
                assert isinstance(event, WorkflowStarted), "a workflow begins with its start"
                self._require_room(event)
                kept.watched = Watched(kept.schedd, await asyncio.to_thread(RunView, at, event))
            else:
                kept.watched.view.apply(at, event)
            if time.monotonic() - began > _TURN_S:
                await asyncio.sleep(0)
                began = time.monotonic()

    def _require_room(self, started: WorkflowStarted) -> None:
        """Raises RefusedError: it is too large, which is known before it is unpacked."""
        try:
            nodes = node_count(started.plan)
        except ValueError as error:
            raise RefusedError(RefusalCode.TOO_LARGE, f"workflow {started.workflow}: {error}") from error
        if nodes > self._most_nodes:
            raise RefusedError(
                RefusalCode.TOO_LARGE,
                f"workflow {started.workflow} has {nodes:,} nodes, and the gateway looks at {self._most_nodes:,} at most: use kettle dag show",
            )
