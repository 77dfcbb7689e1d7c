"""
WRENCH's model of a pool, as a sequence of events: a manager that handles one message at a time, and negotiators that it starts.

The rules are those of `HTCondorComputeService` of WRENCH 2.1 (Casanova and others, Future Generation Computer Systems 112,
2020). At one moment, ends of jobs come before what the manager does, that before what a negotiator does, and submissions come
last, one after another.
"""

from array import array
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Final, Literal, Protocol

from kettle_services.simulator.platforms.host_changes import Changes
from kettle_services.simulator.platforms.hosts import Host
from kettle_services.simulator.wrench.bare_metal import BareMetal
from kettle_services.simulator.wrench.batch_service import BatchService, Discipline
from kettle_services.simulator.wrench.delays import Delays, Oddities
from kettle_services.simulator.wrench.hosts_over_time import HostsOverTime
from kettle_services.simulator.wrench.job_runs import NO_DATA, Data, Due, JobRuns
from kettle_services.simulator.wrench.messages import Step, Talk, admission
from kettle_services.simulator.wrench.pending_jobs import PendingJobs, Shape
from kettle_services.simulator.wrench.transfers import Transfers
from kettle_services.simulator.wrench.unstable_sort import order_of_equals

_END, _MOVED, _CHANGED, _HEARD, _HEARD_OF_LOSS, _MANAGER, _NEGOTIATOR, _ADMITTED = range(8)
"""What is due, in the order in which it happens at one moment; submissions come after all of it."""
_NEVER: Final = -1
_LATEST: Final = 1 << 62

Message = tuple[Literal["submitted", "ended", "lost", "host came"], int] | tuple[Literal["negotiated"], bool]


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
        changes: Mapping[int, Changes] | None = None,
    ) -> None:
        """
        `messages`: how many microseconds one is on its way to or from each host, or node; nothing: no time at all.
        `transfers`: the network that data of jobs go over; None: it takes no time.
        `changes`: by the place of a host when it goes and comes; jobs that run there then are lost, and wait again from their beginning.
        """
        self._messages_take = messages
        self._door_free_at = 0
        """The service admits one submission at a time."""
        self._hosts = BareMetal(bare_metal)
        self._delays = delays or Delays()
        self._oddities = oddities or Oddities()
        self.now = 0
        self._due: Due = []
        self._runs = JobRuns(self._due, (_END, _MOVED), transfers, self._end, can_be_lost=bool(changes))
        self._hosts_over_time = HostsOverTime(changes or {})
        for at, host in self._hosts_over_time.due():
            heappush(self._due, (at, _CHANGED, host))
        self._changes_due = len(self._due)
        self._on_hosts: dict[int, set[int]] | None = {} if changes else None
        """The jobs that run on each host, where hosts go and come."""
        self._open = 0
        """Jobs whose ends have not been reported."""
        self.lost: list[tuple[int, int, int]] = []
        """Runs that were lost with their hosts: the job, and the first and last moment."""
        self._returning: list[int] = []
        """Jobs that were lost, and wait again as soon as the cycle is over that goes on."""
        self._served = False
        """The manager has spent the delay for the message that it handles."""
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

    @property
    def open(self) -> int:
        """How many jobs there are whose ends have not been reported."""
        return self._open

    def run(self, submitter: Submitter | None = None, *, until: int = _LATEST) -> None:
        """
        Until nothing is due any more, or until a moment; jobs of a submitter come after all that were submitted before.
        """
        due, submitted, self._submitter = self._due, self.submitted, submitter
        happen: dict[int, Callable[[int], None]] = {
            _END: self._end_work,
            _MOVED: self._ask_network,
            _CHANGED: self._change,
            _HEARD: self._hear_of_end,
            _HEARD_OF_LOSS: self._hear_of_loss,
            _MANAGER: self._manage,
            _NEGOTIATOR: self._negotiate,
            _ADMITTED: self._admit,
        }
        while True:
            if submitter is not None and submitter.due < (due[0][0] if due else _LATEST):
                submitter.submit_next()
            if self._arrived < len(submitted) and (not due or submitted[self._arrived] < due[0][0]):
                if submitted[self._arrived] >= until:
                    return
                self.now = submitted[self._arrived]
                self._arrive(self._arrived)
                self._arrived += 1
                continue
            if not due or due[0][0] >= until:
                return
            self.now, kind, about = heappop(due)
            happen[kind](about)

    # -- jobs -------------------------------------------------------------------------------------------------------

    def _add(self, at: int, work: int, shape: Shape, priority: int, data: Data, limit: int = 0) -> int:
        if self.submitted and at < self.submitted[-1]:
            raise ValueError("jobs are submitted one after another")
        self.submitted.append(at)
        self._limits.append(limit or work)
        self._shapes.append(self._known.setdefault(shape, shape))
        self._priorities.append(0 if self._oddities.priorities_ignored else priority)
        for column in (self.starts, self.ends, self.reported, self.places):
            column.append(_NEVER)
        job = len(self.submitted) - 1
        self._runs.add(job, work, data)
        self._open += 1
        return job

    def _start(self, job: int, speed: float) -> None:
        self.starts[job] = self.now
        if self._on_hosts is not None:
            self._on_hosts.setdefault(self.places[job], set()).add(job)
        self._runs.start(self.now, job, self.places[job], speed)

    def _end_work(self, job: int) -> None:
        self._runs.work_ended(self.now, job, self.places[job])

    def _ask_network(self, _: int) -> None:
        self._runs.ask_network(self.now)

    def _admit(self, job: int) -> None:
        self._tell(("submitted", job))

    def _leave(self, job: int) -> None:
        if self._on_hosts is not None:
            self._on_hosts[self.places[job]].remove(job)

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
        shape = self._shapes[job]
        self.ends[job] = self.now
        self._leave(job)
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
            self._start(job, self._batch.speed(job))

    # -- hosts that go and come -------------------------------------------------------------------------------------

    def _change(self, host: int) -> None:
        self._changes_due -= 1
        service = self._batch if self._is_batch else self._hosts
        if self._hosts_over_time.change(host):
            service.come(host)
            self._start_batch()
            self._tell(("host came", host))
        else:
            service.go(host)
            assert self._on_hosts is not None, "this host goes"
            jobs = self._batch.jobs_on(host) if self._is_batch else sorted(self._on_hosts.get(host, ()))
            for job in jobs:
                # The batch service may not have heard yet that one has ended or is lost.
                if self.starts[job] != _NEVER and self.ends[job] == _NEVER:
                    self._lose(job)
        at = self._hosts_over_time.next(host)
        if at is not None and self._has_work():
            self._changes_due += 1
            heappush(self._due, (at, _CHANGED, host))

    def _lose(self, job: int) -> None:
        shape = self._shapes[job]
        self._runs.lose(self.now, job)
        self.lost.append((job, self.starts[job], self.now))
        host = self.places[job]
        self._leave(job)
        self.starts[job] = self.places[job] = _NEVER
        if not shape.grid:
            self._hosts.free(host, shape.cores, shape.more)
        if self._messages_take:
            heappush(self._due, (self.now + self._messages_take[host], _HEARD_OF_LOSS, job))
        else:
            self._hear_of_loss(job)

    def _hear_of_loss(self, job: int) -> None:
        if self._shapes[job].grid:
            self._batch.end(job)
            self._start_batch()
        self._tell(("lost", job))

    def _has_work(self) -> bool:
        """Whether anything can still happen to a job because hosts come and go."""
        if self._submitter is not None and self._submitter.due < _LATEST:
            return True
        if self._arrived < len(self.submitted) or len(self._due) > self._changes_due:
            return True
        return bool(self._open) and self._has_hope()

    def _has_hope(self) -> bool:
        """Whether the hosts that will be there again can hold any of the jobs that wait."""
        gone = self._hosts_over_time.gone
        if self._is_batch:
            return self._batch.has_hope(gone)
        return any(self._hosts.has_hope(shape.cores, shape.more, gone) for shape in self._pending.shapes())

    # -- the manager ------------------------------------------------------------------------------------------------

    def _tell(self, message: Message) -> None:
        self._messages.append(message)
        self._wake_manager()

    def _wake_manager(self) -> None:
        if not self._manager_wakes:
            self._manager_wakes = True
            heappush(self._due, (max(self.now, self._manager_free_at), _MANAGER, _NEVER))

    def _manage(self, _: int) -> None:
        self._manager_wakes = False
        message = self._messages[0]
        if message[0] in ("ended", "lost") and not self._served:
            delay = self._delays.grid_post if self._shapes[message[1]].grid else self._delays.non_grid_post
            self._served = True
            self._manager_free_at = self.now + delay
            if message[0] == "ended":
                self.reported[message[1]] = self._manager_free_at
            if delay:
                self._wake_manager()
                return
        self._served = False
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
            case "host came", _:
                self._exhausted = False
            case "lost", job:
                self._exhausted = False
                self._returning.append(job)
            case "ended", job:
                self._exhausted = False
                self._open -= 1
                if self._submitter is not None:
                    self._submitter.reported(job, self.now)
            case "negotiated", placed:
                self._negotiates = False
                self._exhausted = not placed
        if self._returning and not self._negotiates:
            self._exhausted = False
            for job in self._returning:
                self._pending.add_again(job, self._shapes[job], self._priorities[job])
            self._returning.clear()

    # -- a negotiator -----------------------------------------------------------------------------------------------

    def _negotiate(self, _: int) -> None:
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
        """
        Go one message further: for each job the hosts are asked one after another, until one of them can hold it.
        """
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
                if self._hosts.holds(talk.host, talk.shape.cores, talk.shape.more):  # it may have gone since
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
        if host is not None:  # else it has gone since it was chosen, and the job waits on
            self._place_on(host, job, shape)

    def _place_on(self, host: int, job: int, shape: Shape) -> None:
        self._pending.remove(job, shape, self._priorities[job])
        self._hosts.take(host, shape.cores, shape.more)
        self.places[job] = host
        self._start(job, self._hosts.speed(host))


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
