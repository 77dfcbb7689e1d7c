"""Dask's scheduler, as one that outlives the programs of its user."""

# distributed has no types:
# pyright: reportUnknownMemberType=false

import asyncio
from collections.abc import Collection
from typing import Any, Final

from distributed import Scheduler
from distributed.scheduler import ClientState

KEPT: Final = "kept-of-"
"""Before the name of a client that is gone: under this name its results are kept."""
KEEP_S: Final = 900.0
LIST_KEPT: Final = "kettle_kept_results"


class JobScheduler(Scheduler):
    """
    Keeps the results of a client that was lost, as of a notebook whose kernel died, so that the next one finds them.

    A client that says goodbye takes its results with it, as with Dask itself.
    """

    def __init__(self, *args: Any, keep_s: float = KEEP_S, **options: Any) -> None:
        """`keep_s`: for how long they are kept."""
        super().__init__(*args, **options)
        self._keep_s: Final = keep_s
        self._closing: asyncio.Task[None] | None = None
        self.stream_handlers["close-client"] = self._dismiss_client
        self.handlers[LIST_KEPT] = self.kept_results

    def remove_client(self, client: str, stimulus_id: str | None = None) -> None:
        """Called for a client whose connection has ended; one that said goodbye is gone by then."""
        lost = self.clients.get(client)
        if lost is not None and lost.wants_what and not client.startswith(KEPT):
            self._keep(lost)
            if not self._ongoing_background_tasks.closed:
                self._ongoing_background_tasks.call_later(self._keep_s, self._forget, KEPT + client)
        super().remove_client(client, stimulus_id)

    async def close(self, timeout: float | None = None, reason: str = "unknown") -> None:
        """
        Close, once: what has begun goes on when who waits for it is cancelled.

        Otherwise it would never end, and everybody waits for that who leaves the `async with` of a scheduler.
        """
        if self._closing is None:
            self._closing = asyncio.create_task(super().close(timeout, reason), name="closing the scheduler")
        await asyncio.shield(self._closing)

    def kept_results(self) -> dict[str, Collection[Any]]:
        """The keys of each lost client, by its name; those of which nothing is left have no place in it."""
        return {
            name.removeprefix(KEPT): [task.key for task in state.wants_what]
            for name, state in self.clients.items()
            if name.startswith(KEPT) and state.wants_what
        }

    def _dismiss_client(self, client: str, stimulus_id: str | None = None) -> None:
        super().remove_client(client, stimulus_id)

    def _keep(self, lost: ClientState) -> None:
        # As `client_desires_keys` does, which would tell a client that is gone about each of them.
        name = KEPT + lost.client_key
        kept = self.clients.setdefault(name, ClientState(name))
        for task in lost.wants_what:
            if task.who_wants is not None:
                task.who_wants.add(kept)
                kept.wants_what.add(task)

    async def _forget(self, kept: str) -> None:
        super().remove_client(kept)
