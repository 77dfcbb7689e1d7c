"""
What goes on through the gateway at this moment: each connection of a person to a service of a job, counted, limited, and ended when
the person may not have it any more.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Final, Literal

from kettle.bus.ports import BusError, RefusedError
from kettle_services.gateway.domain.published_access import Because
from kettle_services.gateway.published.tunnels import JobKey
from kettle_services.gateway.rest.admission import GOOD_NO_MORE
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.problem import ProblemCode

LOOK_AGAIN_S: Final = 2.0
"""Between looks whether those who use services may still do so."""

Via = Literal["http", "websocket", "stream", "tls"]
Look = Callable[[], Awaitable[None]]

_log: Final = logging.getLogger(__name__)


class Use:
    """One connection."""

    def __init__(
        self,
        person: str,
        job: JobKey,
        service: str,
        via: Via,
        look: Look,
        *,
        attempt: int = 0,
        because: Because = "owner",
    ) -> None:
        """
        `attempt`: the run of the job that publishes it; `because`: by what the person may; `look` raises RequestRefused: not any more.
        """
        self.person: Final = person
        self.attempt: Final = attempt
        self.because: Final = because
        self.reported: tuple[int, int] | None = None
        """What was reported of its bytes; None: nothing of it was."""
        self.job: Final = job
        self.service: Final = service
        self.via: Final = via
        self.since: Final = time.time()
        self.look: Final = look
        self.end: Callable[[], None] = lambda: None
        self._sent = 0
        self._received = 0
        self._counted: Callable[[], tuple[int, int]] = lambda: (self._sent, self._received)

    def counted_by(self, counted: Callable[[], tuple[int, int]]) -> None:
        """Another one counts: bytes to the job, and from it."""
        self._counted = counted

    @property
    def bytes(self) -> tuple[int, int]:
        """To the job, and from the job, so far."""
        return self._counted()

    def count_sent(self, count: int) -> None:
        """So many bytes more have gone to the job."""
        self._sent += count

    def count_received(self, count: int) -> None:
        """So many bytes more have come from the job."""
        self._received += count


class Uses:
    """All of them."""

    def __init__(self, most: int, most_of_one: int) -> None:
        self._most: Final = most
        self._most_of_one: Final = most_of_one
        self._current: set[Use] = set()
        self._looked_at: set[Use] = set()
        """Of these it is being asked whether they may go on."""
        self._of: Counter[str] = Counter()
        self.ended: Callable[[Use], None] = lambda _use: None
        """Told of each that is over, with its counts."""

    def __len__(self) -> int:
        return len(self._current)

    def __iter__(self) -> Iterator[Use]:
        return iter(list(self._current))

    @contextmanager
    def begun(self, use: Use) -> Generator[Use]:
        """As long as it goes on; raises RequestRefused: there are too many."""
        if self._of[use.person] >= self._most_of_one:
            raise RequestRefused(
                429,
                ProblemCode.TOO_MANY,
                f"you have {self._most_of_one} connections to services of jobs, which is the most of one person: close one",
                retry_after=5,
            )
        if len(self._current) >= self._most:
            raise RequestRefused(
                503,
                ProblemCode.TOO_MANY,
                f"{self._most} connections to services of jobs are open, which is the most; try again later",
                retry_after=5,
            )
        self._current.add(use)
        self._of[use.person] += 1
        try:
            yield use
        finally:
            self._current.discard(use)
            self._of[use.person] -= 1
            if not self._of[use.person]:
                del self._of[use.person]
            self.ended(use)

    async def watch(self) -> None:
        """End those whose person may not have them any more; never returns."""
        async with asyncio.TaskGroup() as looks:
            while True:
                await asyncio.sleep(LOOK_AGAIN_S)
                now = time.time()
                for use in self:
                    if use not in self._looked_at and now - use.since >= LOOK_AGAIN_S:
                        self._looked_at.add(use)
                        looks.create_task(self._look(use), name="look at a use")

    async def _look(self, use: Use) -> None:
        """At one: an access point that does not answer keeps nobody else's from being looked at."""
        try:
            await use.look()
        except RequestRefused as refusal:
            if refusal.status in GOOD_NO_MORE:
                _log.info("%s is cut off from %s of job %s: %s", use.person, use.service, use.job[1], refusal)
                use.end()
        except (BusError, RefusedError) as error:
            # What was known last counts where nobody can tell.
            _log.warning("it is not known whether %s may still use job %s: %s", use.person, use.job[1], error)
        finally:
            self._looked_at.discard(use)

    def end_all(self) -> None:
        """End all of them."""
        for use in self:
            use.end()
