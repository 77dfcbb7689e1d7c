"""
WRENCH's model of a pool, as a sequence of events: a manager that handles one message at a time, and negotiators that it starts.

The rules are those of `HTCondorComputeService` of WRENCH 2.1 (Casanova and others, Future Generation Computer Systems 112,
2020). At one moment, ends of jobs come before what the manager does, that before what a negotiator does, and submissions come
last, one after another.
"""

from array import array
from collections import deque
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Final, Literal, Protocol

from kettle_services.simulator.platforms.hosts import Host
from kettle_services.simulator.wrench.bare_metal import BareMetal
from kettle_services.simulator.wrench.batch_service import BatchService, Discipline
from kettle_services.simulator.wrench.delays import Delays, Oddities
from kettle_services.simulator.wrench.messages import Step, Talk, admission
from kettle_services.simulator.wrench.pending_jobs import PendingJobs, Shape
from kettle_services.simulator.wrench.transfers import Transfers
from kettle_services.simulator.wrench.unstable_sort import order_of_equals

_END, _MOVED, _HEARD, _MANAGER, _NEGOTIATOR, _ADMITTED = range(6)
"""What is due, in the order in which it happens at one moment; submissions come after all of it."""
_NEVER: Final = -1
_LATEST: Final = 1 << 62

Data = tuple[int, int]
"""Bytes that a job reads before its work, and writes after it."""
NO_DATA: Final[Data] = (0, 0)

Message = tuple[Literal["submitted", "ended"], int] | tuple[Literal["negotiated"], bool]


class Submitter(Protocol):
    """Who submits jobs while a pool runs, because of ends that it hears of."""

    @property
    def due(self) -> int:
        """When the next one is submitted, as far as that is known; later than anything, if there is none."""
        ...

    def submit_next(self) -> None:
        """Submit it."""
        ...

    def reported(self, job: int, now: int) -> None:
        """Hear of an end."""
        ...


class WrenchPool:
    """
    One run; times in whole microseconds, and jobs are numbered as they are submitted.

    `bare_metal` and `batch` are the hosts of the services that the pool consists of; without the latter there is no grid universe.
    """

    def __init__(
        self,
        *,
        bare_metal: Sequence[Host] = (),
        batch: Sequence[Host] = (),
        discipline: Discipline = Discipline.FCFS,
        delays: Delays | None = None,
        oddities: Oddities | None = None,
        messages: Sequence[int] = (),
        transfers: Transfers | None = None,
    ) -> None:
        """
        `messages`: how many microseconds one is on its way to or from each host, or node; nothing: no time at all.
        `transfers`: the network that data of jobs go over; None: it takes no time.
        """
        self._transfers = transfers
        self._data: dict[int, Data] = {}
        """Of each job that moves any: what it has to read and write still."""
        self._writing: set[int] = set()
        self._moves_at = _NEVER
        """When the network is asked next."""
        self._messages_take = messages
        self._door_free_at = 0
        """The service admits one submission at a time."""
        self._hosts = BareMetal(bare_metal)
        self._delays = delays or Delays()
        self._oddities = oddities or Oddities()
        self.now = 0
        self._due: list[tuple[int, int, int]] = []
        self._arrived = 0
        """Jobs with a lower number have come."""
        self._pending = PendingJobs()
        self._messages: deque[Message] = deque()
        self._manager_free_at = 0
        self._manager_wakes = False
        self._negotiates = False
        self._exhausted = False
        """The last negotiator placed nothing, and nothing has changed since."""
        self._cycle: _Cycle | None = None
        self._known: dict[Shape, Shape] = {}
        self._shapes: list[Shape] = []
        self._limits = array("q")
        self._is_batch = bool(batch)
        self._batch = BatchService(batch, self._shapes, self._limits, discipline)
        self._priorities = array("h")
        self._works = array("q")
        self.places = array("l")
        """The host of each job, or its first node, by its place among those of the service."""
        self._submitter: Submitter | None = None
        self.submitted = array("q")
        self.starts = array("q")
        self.ends = array("q")
        self.reported = array("q")
        """When the submitter hears of the end; -1, as in the other columns: it has not happened."""

    # -- what is asked of it --------------------------------------------------------------------------------------

    def submit(
        self,
        at: int,
        work: int,
        *,
        cores: int = 1,
        memory: int = 0,
        priority: int = 0,
        data: Data = NO_DATA,
    ) -> int:
        """
        A job of so many microseconds of work of a core of speed 1, not before the last one; the number that it has here.

        Raises ValueError: no host can ever hold it, or it comes before the last one.
        """
        if not self._hosts.can_ever_hold(cores, memory):
            raise ValueError(f"no host has {cores} cores and {memory} MiB of memory for a job")
        return self._add(at, work, Shape(grid=False, cores=cores, more=memory), priority, data)

    def submit_to_batch(
        self,
        at: int,
        work: int,
        *,
        nodes: int = 1,
        cores: int = 1,
        limit: int = 0,
        priority: int = 0,
        data: Data = NO_DATA,
    ) -> int:
        """
        A job of the grid universe, which goes on to the batch service, on so many cores of so many nodes.

        `limit` is how many microseconds the batch service takes it to run; 0: its work.

        Raises ValueError: the service has not so many nodes of so many cores, or it comes before the last one.
        """
        shape = Shape(grid=True, cores=cores, more=nodes)
        if not self._batch.can_ever_hold(shape):
            raise ValueError(f"the batch service has not {nodes} nodes of {cores} cores for a job")
        return self._add(at, work, shape, priority, data, limit)

    def run(self, submitter: Submitter | None = None) -> None:
        """Until nothing is due any more; jobs of a submitter come after all that were submitted before."""
        due, submitted, self._submitter = self._due, self.submitted, submitter
        while True:
            if submitter is not None and submitter.due < (due[0][0] if due else _LATEST):
                submitter.submit_next()
            if self._arrived < len(submitted) and (not due or submitted[self._arrived] < due[0][0]):
                self.now = submitted[self._arrived]
                self._arrive(self._arrived)
                self._arrived += 1
                continue
            if not due:
                return
            self.now, kind, job = heappop(due)
            if kind == _END:
                self._end(job)
            elif kind == _MANAGER:
                self._manage()
            elif kind == _NEGOTIATOR:
                self._negotiate()
            elif kind == _HEARD:
                self._hear_of_end(job)
            elif kind == _MOVED:
                self._go_on_with_transfers()
            else:
                self._tell(("submitted", job))

    # -- jobs -------------------------------------------------------------------------------------------------------

    def _add(self, at: int, work: int, shape: Shape, priority: int, data: Data, limit: int = 0) -> int:
        if self.submitted and at < self.submitted[-1]:
            raise ValueError("jobs are submitted one after another")
        self.submitted.append(at)
        self._works.append(work)
        self._limits.append(limit or work)
        self._shapes.append(self._known.setdefault(shape, shape))
        self._priorities.append(0 if self._oddities.priorities_ignored else priority)
        for column in (self.starts, self.ends, self.reported, self.places):
            column.append(_NEVER)
        job = len(self._works) - 1
        if self._transfers is not None and any(data):
            self._data[job] = data
        return job

    def _start(self, job: int) -> None:
        self.starts[job] = self.now
        reads, writes = self._data.get(job, NO_DATA) if self._data else NO_DATA
        if reads:
            self._data[job] = (0, writes)
            self._move(job, reads)
        else:
            self._work(job)

    def _work(self, job: int) -> None:
        grid = self._shapes[job].grid
        speed = self._batch.speed(job) if grid else self._hosts.speed(self.places[job])
        heappush(self._due, (self.now + round(self._works[job] / speed), _END, job))

    def _move(self, job: int, size: int) -> None:
        assert self._transfers is not None, "only then it is kept what jobs move"
        self._transfers.begin(self.now, job, self.places[job], size)
        self._await_transfers()

    def _await_transfers(self) -> None:
        """See to it that the network is asked when its next transfer ends."""
        assert self._transfers is not None
        change = self._transfers.next_change(self.now)
        if change is not None and (self._moves_at <= self.now or change < self._moves_at):
            self._moves_at = change
            heappush(self._due, (change, _MOVED, _NEVER))

    def _go_on_with_transfers(self) -> None:
        assert self._transfers is not None
        for job in self._transfers.ended(self.now):
            if job in self._writing:
                self._writing.remove(job)
                self._end(job)
            else:
                self._work(job)
        self._await_transfers()

    def _arrive(self, job: int) -> None:
        shape = self._shapes[job]
        if not self._messages_take or shape.grid:
            self._tell(("submitted", job))
            return
        self._door_free_at = max(self.now, self._door_free_at) + admission(
            self._messages_take, self._hosts.hosts, shape
        )
        heappush(self._due, (self._door_free_at, _ADMITTED, job))

    def _end(self, job: int) -> None:
        """Its work is over; its output may have to be moved."""
        if self._data and (writes := self._data.get(job, NO_DATA)[1]):
            self._data[job] = NO_DATA
            self._writing.add(job)
            self._move(job, writes)
            return
        shape = self._shapes[job]
        self.ends[job] = self.now
        if not shape.grid:
            self._hosts.free(self.places[job], shape.cores, shape.more)
        if self._messages_take:
            heappush(self._due, (self.now + self._messages_take[self.places[job]], _HEARD, job))
        else:
            self._hear_of_end(job)

    def _hear_of_end(self, job: int) -> None:
        if self._shapes[job].grid:
            self._batch.end(job)
            self._start_batch()
        self._tell(("ended", job))

    def _start_batch(self) -> None:
        for job in self._batch.start(self.now):
            self.places[job] = self._batch.first_node(job)
            self._start(job)

    # -- the manager ------------------------------------------------------------------------------------------------

    def _tell(self, message: Message) -> None:
        self._messages.append(message)
        self._wake_manager()

    def _wake_manager(self) -> None:
        if not self._manager_wakes:
            self._manager_wakes = True
            heappush(self._due, (max(self.now, self._manager_free_at), _MANAGER, _NEVER))

    def _manage(self) -> None:
        self._manager_wakes = False
        message = self._messages[0]
        if message[0] == "ended" and self.reported[message[1]] == _NEVER:
            delay = self._delays.grid_post if self._shapes[message[1]].grid else self._delays.non_grid_post
            self.reported[message[1]] = self._manager_free_at = self.now + delay
            if delay:
                self._wake_manager()
                return
        self._messages.popleft()
        self._handle(message)
        if self._pending and not (self._negotiates or self._exhausted):
            self._negotiates = True
            self._cycle = _Cycle(self._pending, unstable_sort=self._oddities.unstable_sort)
            heappush(self._due, (self.now + self._delays.negotiator, _NEGOTIATOR, _NEVER))
        if self._messages:
            self._wake_manager()

    def _handle(self, message: Message) -> None:
        match message:
            case "submitted", job:
                self._pending.add(job, self._shapes[job], self._priorities[job])
                self._exhausted = False
            case "ended", job:
                self._exhausted = False
                if self._submitter is not None:
                    self._submitter.reported(job, self.now)
            case "negotiated", placed:
                self._negotiates = False
                self._exhausted = not placed

    # -- a negotiator -----------------------------------------------------------------------------------------------

    def _negotiate(self) -> None:
        cycle = self._cycle
        assert cycle is not None
        if self._messages_take and not self._is_batch:
            self._ask(cycle)
            return
        if cycle.chosen is not None:
            self._place(*cycle.chosen)
            cycle.chosen = None
        while (found := cycle.next(self._fits, self._shapes)) is not None:
            cycle.placed = True
            delay = self._delays.grid_pre if found[1].grid else self._delays.non_grid_pre
            if delay:
                cycle.chosen = found
                heappush(self._due, (self.now + delay, _NEGOTIATOR, _NEVER))
                return
            self._place(*found)
        self._cycle = None
        self._tell(("negotiated", cycle.placed))

    def _ask(self, cycle: "_Cycle") -> None:
        """Go one message further: for each job the hosts are asked one after another, until one of them can hold it."""
        talk = cycle.talk
        if talk is None or talk.host == len(self._messages_take):
            found = cycle.next(_any_shape, self._shapes)
            if found is None:
                self._cycle = None
                self._tell(("negotiated", cycle.placed))
                return
            talk = cycle.talk = Talk(*found)
        wait = way = self._messages_take[talk.host]
        match talk.step:
            case Step.ASK:
                talk.step = Step.ANSWER
            case Step.ANSWER:
                fits = self._hosts.holds(talk.host, talk.shape.cores, talk.shape.more)
                talk.step = Step.SEND if fits else Step.PASS
            case Step.PASS:
                talk.host += 1
                talk.step, wait = Step.ASK, 0
            case Step.SEND:
                talk.step, wait = Step.ACKNOWLEDGE, self._delays.non_grid_pre + way
            case Step.ACKNOWLEDGE:
                cycle.placed, cycle.talk = True, None
                self._place_on(talk.host, talk.job, talk.shape)
        heappush(self._due, (self.now + wait, _NEGOTIATOR, _NEVER))

    def _fits(self, shape: Shape) -> bool:
        return shape.grid or self._hosts.first_with(shape.cores, shape.more) is not None

    def _place(self, job: int, shape: Shape) -> None:
        if shape.grid:
            self._pending.remove(job, shape, self._priorities[job])
            self._batch.submit(job)
            self._start_batch()
            return
        host = self._hosts.first_with(shape.cores, shape.more)
        assert host is not None, "only ends of jobs came since"
        self._place_on(host, job, shape)

    def _place_on(self, host: int, job: int, shape: Shape) -> None:
        self._pending.remove(job, shape, self._priorities[job])
        self._hosts.take(host, shape.cores, shape.more)
        self.places[job] = host
        self._start(job)


class _Cycle:
    """The list of a negotiator: what was pending when it began, and how far through it is."""

    def __init__(self, pending: PendingJobs, *, unstable_sort: bool) -> None:
        self._pending = pending
        self._priorities = pending.priorities()
        self._start, self._end = 0, pending.newest + 1
        self._sorted: list[int] | None = None
        if unstable_sort:
            jobs = list(pending.in_order())
            self._sorted = [jobs[place] for place in reversed(order_of_equals(len(jobs)))]
        self.chosen: tuple[int, Shape] | None = None
        self.talk: Talk | None = None
        self.placed = False

    def next(self, fits: Callable[[Shape], bool], shapes: Sequence[Shape]) -> tuple[int, Shape] | None:
        """The next job of the list that can be placed now."""
        if self._sorted is not None:
            while self._sorted:
                job = self._sorted.pop()
                if fits(shapes[job]):
                    return job, shapes[job]
            return None
        while self._priorities:
            found = self._pending.next(self._priorities[0], self._start, self._end, fits)
            if found is not None:
                self._start = found[0] + 1
                return found
            self._priorities.pop(0)
            self._start = 0
        return None


def _any_shape(shape: Shape) -> bool:
    del shape
    return True
