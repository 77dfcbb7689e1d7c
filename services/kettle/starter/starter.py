"""
One job from its order to its final report: a state machine around `poll`, in a process of its own.
"""

import math
import os
import select
import socket
import sys
import time
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from kettle.execution.attempt import Input, JobSpec, StoredReport
from kettle.execution.cgroups import Cgroup
from kettle.execution.containers.policy import ContainerError
from kettle.execution.jobad import JobAd, long_form
from kettle.execution.linux import become_subreaper, boottime
from kettle.execution.outputs import STDOUT, Purpose, TooManyResultsError, collect
from kettle.execution.process import LaunchError, launch
from kettle.execution.protocol import Asked, Continue, End, Hello, Over, Renew, Run, Said, Saved, Suspend
from kettle.execution.quoting import QuotingError
from kettle.execution.sandbox import Mark, Sandbox, release_execute
from kettle.starter.checkpoint import Checkpoint
from kettle.starter.family import Family, nobody
from kettle.starter.keeping import keep
from kettle.starter.line import Line
from kettle.starter.mover import Mover, TransferError, downloads
from kettle.starter.program import container_of, program_of
from kettle.starter.reception import Reception
from kettle.starter.reporting import Reporter
from kettle.starter.stillness import Stillness
from kettle.starter.verdict import (
    Ending,
    after_collecting,
    after_mishap,
    after_starting,
    after_transfer,
    after_waiting,
    exited,
    limits,
    lost_lease,
    out_of_disk,
    out_of_memory,
)
from kettle.transfer.plugin import Move
from kettle.wire.events.job import Usage
from kettle.wire.work import Exited, Failed, Measured, Report, Started, Trouble

if TYPE_CHECKING:
    from kettle.execution.containers.contained import Contained

EXIT_ORPHANED: Final = 70
_FIRST_MEASURE_S: Final = 8.0
_LONGEST_POLL_S: Final = 3600.0
_LONGEST_WAIT_S: Final = 30.0
"""For a time on the wall's clock, which may be set."""


def run_starter(sock: socket.socket, lifeline_fd: int) -> None:
    """
    Be a starter: wait for the order on `sock`, and carry it out.
    """
    line = Line(sock)
    order = line.first()
    if order is not None:
        Starter(line, lifeline_fd, order).run()


class _EndedError(Exception):
    """
    The job is not to be started any more; why is in the starter's ending.
    """


class Starter:
    """
    The state of one job on this machine.
    """

    def __init__(self, line: Line, lifeline_fd: int, order: Run) -> None:
        self._line = line
        self._lifeline_fd = lifeline_fd
        self._spec: JobSpec = order.spec
        self._job = JobAd(order.spec.ad)
        self._sandbox = Sandbox(f"{order.spec.execute}/{order.spec.id.sandbox}", order.spec.account)
        self._cgroup = Cgroup(order.spec.cgroups, order.spec.id.name) if order.spec.cgroups else None
        self._family: Family | None = None
        self._container: Contained | None = None
        self._before: dict[str, Mark] = {}
        self._started: Report | None = None
        self._ending: Ending | None = None
        self._deadline = order.spec.deadline
        self._hard_at: float | None = None
        self._monitor_at = boottime() + order.spec.monitor_interval
        self._measure_at = boottime() + _FIRST_MEASURE_S
        self._limits: list[tuple[float, Ending]] = []
        self._reporter = Reporter(order.spec)
        self._stillness = Stillness(self._reporter.report)
        self._checkpoint = Checkpoint(self._job, self._reporter.report, order.spec.checkpoint_pause)
        self._reception = Reception(order.spec, self._job, self._sandbox, self._cgroup, line.say)
        self._deferred = self._job.given("DeferralTime")

    def run(self) -> None:
        """
        All of it; returns when the final report is on disk and nothing else is left to do.
        """
        self._line.settle(self._spec.state)
        self._line.say(self._hello())
        become_subreaper()
        if os.geteuid() == 0:
            os.setgroups([])  # when we act as the job's account, we have no group but its own
        try:
            self._live()
        except Exception as error:  # noqa: BLE001 - the runner of this process: a job must not be able to end it
            self._stumble(after_mishap(error), error)
        self._finish()

    def _live(self) -> None:
        """
        From an empty directory to the end of the job's main process, by way of its checkpoints.
        """
        while self._launch():
            assert self._family is not None
            self._begin(self._family)
            self._watch(self._family)
            if not self._saved(self._family):
                return

    def _launch(self) -> bool:
        """
        Have a main process, the first one or the next; whether there is one.
        """
        try:
            before = self._family
            pid = self._start(again=before is not None)
            self._family = before.successor(pid) if before is not None else Family(pid, self._cgroup)
        except TransferError as error:
            self._ending = self._ending or after_transfer(error)
        except (ContainerError, LaunchError, QuotingError, OSError) as error:
            self._ending = after_starting(error)
        except _EndedError:
            pass  # before it had begun
        return self._ending is None

    def _stumble(self, ending: Ending, error: Exception) -> None:
        """
        The job pays for it, in words that its owner can read; the traceback goes to the log.
        """
        if not isinstance(error, TooManyResultsError):
            sys.excepthook(type(error), error, error.__traceback__)
        self._ending = self._ending or ending

    # -- before ------------------------------------------------------------------------------------------------------

    def _start(self, *, again: bool = False) -> int:
        """
        The pid of the job's main process; `again`: in the sandbox as it is.
        """
        path = self._sandbox.path
        appends = again or any(file.saved and file.name == STDOUT for file in self._spec.inputs)
        contained = container_of(self._spec, self._job, path)
        if not again:
            self._prepare(but=None if contained is None else contained[1].brought())
        elif self._container is not None:
            self._container.clear()
        if contained is None:
            program = program_of(self._spec, self._job, path)
            self._check()
            return launch(msgspec.structs.replace(program, appends=appends), self._cgroup)
        request, self._container = contained
        program = program_of(self._spec, self._job, path, request.directory)
        program = msgspec.structs.replace(program, appends=appends)
        with self._container.preparing(program) as builder:
            self._listen(nobody(self._cgroup), builder.fileno())
            self._check()
            box = self._container.prepared(builder)
        return self._container.start(box, self._cgroup, self._check)

    def _check(self) -> None:
        """
        Preparing takes its time: what was ordered meanwhile, and the end of the lease, keep the job from being started.
        One that is to start at a time of its own waits for that here, once.

        Raises:
            _EndedError: it must not start any more.
        """
        bystanders = nobody(self._cgroup)
        self._round(bystanders, -1, 0)
        if self._deferred and self._ending is None:
            self._deferred = False
            self._ending = after_waiting(self._job, time.time())
            at = self._job.number("DeferralTime") or 0.0
            while self._ending is None and (left := at - time.time()) > 0:
                left_ms = int(min(left, _LONGEST_WAIT_S) * 1000) + 1
                self._round(bystanders, -1, min(left_ms, self._timeout_ms()))
        if self._ending is not None:
            raise _EndedError

    def _prepare(self, *, but: Input | None = None) -> None:
        self._sandbox.make()
        for file in self._spec.inputs:
            if file is not but:
                self._sandbox.place(file)
        self._sandbox.write(".job.ad", long_form(self._spec.ad))
        self._sandbox.write(".machine.ad", self._spec.machine_ad)
        if self._cgroup is not None:
            self._cgroup.make(memory_mib=self._spec.memory)
        if moves := downloads(self._job, self._sandbox.path):
            self._move(moves, upload=False)
        saved = {file.name for file in self._spec.inputs if file.saved}
        self._before = {name: mark for name, mark in self._sandbox.catalogue().items() if name not in saved}

    def _move(self, moves: list[Move], *, upload: bool) -> None:
        """
        Have files moved by URL, and wait; orders are heard meanwhile.

        Raises:
            TransferError: they were not moved, or it was ended before.
        """
        mover = Mover(self._spec, self._job, moves, upload=upload, cgroup=self._cgroup)
        family = Family(mover.pid, self._cgroup)
        try:
            self._watch(family)
            if self._ending is not None:
                raise TransferError(self._ending.reason, hold=False, code=self._ending.code, subcode=0)
            mover.outcome()
        finally:
            family.extinguish()
            mover.close()

    def _begin(self, family: Family) -> None:
        self._limits = limits(self._job, self._spec.began, boottime())
        if self._started is None:
            self._started = self._reporter.report(Started(pid=family.pid, at=time.time()))
            self._line.say(Said(self._started))
        self._stillness.begin(family)
        self._repeat()

    # -- while it runs -----------------------------------------------------------------------------------------------

    def _watch(self, family: Family) -> None:
        """
        Returns when the main process has ended and was reaped.
        """
        handle = os.pidfd_open(family.pid)
        try:
            self._listen(family, handle)
        finally:
            os.close(handle)
        family.reap()

    def _saved(self, family: Family) -> bool:
        """
        Whether the program has ended with a checkpoint that is saved now, and is to be started again.
        """
        if self._ending is not None or not self._checkpoint.is_made(family.status):
            return False
        family.extinguish()
        self._reception.close()  # its sessions are of this life
        self._stillness.pause(family)
        self._limits = limits(self._job, self._spec.began, math.inf)
        usage = self._usage(family.cpu_seconds())
        try:
            self._ending = self._checkpoint.take(self._sandbox, self._before, usage)
        except Exception as error:  # noqa: BLE001 - as in `run`: the job made what we stumbled over
            self._stumble(after_collecting(error), error)
        while self._ending is None and not self._checkpoint.goes_on:
            self._checkpoint.say(self._line)
            self._round(family, -1, min(self._checkpoint.timeout_ms(), self._timeout_ms()))
        return self._ending is None

    def _listen(self, family: Family, handle: int) -> None:
        """
        Look after the family, and hear what is ordered, until `handle` is readable.
        """
        while not self._round(family, handle, self._timeout_ms()):
            pass

    def _round(self, family: Family, handle: int, timeout_ms: int) -> bool:
        """
        Whether `handle` (-1: there is none) is readable; if not, everything else that is due was done.
        """
        poll = select.poll()
        for fd in (handle, self._lifeline_fd):
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        self._line.register(poll)
        self._reception.register(poll)
        ready = {fd for fd, _ in poll.poll(timeout_ms)}
        if self._lifeline_fd in ready:
            self._orphaned()
        self._reception.go_on(ready)
        if handle in ready:
            return True
        if self._line.fileno() in ready:
            self._hear(family)
        self._tick(family)
        self._reception.answer(self._family, self._container, still=self._stillness.wanted)
        return False

    def _timeout_ms(self) -> int:
        moments = [self._deadline, self._monitor_at, *(at for at, _ in self._limits)]
        if self._ending is not None:
            moments = [self._monitor_at]  # whatever else falls due: it is being ended already
        moments.append(self._reception.due)
        moments += [at for at in (self._hard_at, self._line.retry_at) if at is not None]
        return max(0, int(min(min(moments) - boottime(), _LONGEST_POLL_S) * 1000) + 1)

    def _hear(self, family: Family) -> None:
        for message in self._line.hear():
            match message:
                case Renew(deadline=deadline):
                    self._deadline = max(self._deadline, deadline)
                case End(code=code, reason=reason, hard=hard, hold=hold, subcode=subcode):
                    ending = Ending(hold=hold, code=code, reason=reason, subcode=subcode)
                    self._end(family, ending, hard=hard)
                case Suspend() | Continue():
                    self._still(family, suspend=isinstance(message, Suspend))
                case Saved(number=number):
                    self._checkpoint.confirm(number)
                case Asked():
                    self._reception.hear(message)
                case Run():
                    pass  # said twice is said once

    def _still(self, family: Family, *, suspend: bool) -> None:
        if not suspend:
            self._stillness.resume(family)
        elif self._ending is None:
            self._stillness.suspend(family)
        self._repeat()

    def _repeat(self) -> None:
        if (said := self._stillness.said) is not None:
            self._line.say(Said(said))

    def _tick(self, family: Family) -> None:
        now = boottime()
        self._line.reconnect(self._hello())
        if self._hard_at is not None and now >= self._hard_at:
            self._hard_at = None
            family.signal(9)
        if self._ending is None:
            if now >= self._deadline:
                self._end(family, lost_lease(), hard=True)
            for at, ending in self._limits:
                if now >= at:
                    self._end(family, ending, hard=False)
        if now >= self._monitor_at:
            if family.status is None:
                self._monitor(family)
            self._monitor_at = boottime() + self._spec.monitor_interval

    def _monitor(self, family: Family) -> None:
        family.reap()
        if family.status is not None:
            return
        memory = family.measure()
        enforced = self._cgroup is not None and self._cgroup.limits_memory
        if not enforced and self._spec.memory and memory > self._spec.memory * 1024:
            self._end(family, out_of_memory(self._spec.memory, memory), hard=True)
        if self._spec.enforce_disk and (disk := self._sandbox.size_kib()) > self._spec.disk:
            self._end(family, out_of_disk(self._spec.disk, disk), hard=True)
        if boottime() >= self._measure_at:
            self._measure_at = boottime() + self._spec.measure_interval
            self._line.say(
                Said(self._reporter.report(Measured(usage=self._usage(family.running_cpu_seconds()))))
            )
            self._repeat()

    def _end(self, family: Family, ending: Ending, *, hard: bool) -> None:
        """
        Start to end the job.  The first reason counts; a hard order also hurries one that was given time.

        What only prepares a job needs no time.
        """
        hard = hard or family.status is not None
        first = self._ending is None
        if first:
            self._ending = ending
        if hard:
            self._hard_at = None
            family.signal(9)
        elif first:
            self._hard_at = boottime() + self._job.kill_timeout(self._spec.kill_timeout)
            family.signal(self._job.kill_signal(ending.code))
            self._stillness.lift(family)  # else it would not hear of it

    def _orphaned(self) -> NoReturn:
        """
        The master is gone: so is everything that it was answerable for.
        """
        (self._family or nobody(self._cgroup)).extinguish()
        if self._cgroup is not None:
            self._cgroup.remove()
        self._sandbox.remove()
        release_execute(self._spec.execute)
        os._exit(EXIT_ORPHANED)

    # -- after -------------------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        at = time.time()
        (self._family or nobody(self._cgroup)).extinguish()
        self._reception.close()
        if self._container is not None:
            self._container.finish()
        body, kept = self._conclude(at)
        if self._cgroup is not None:
            self._cgroup.remove()
        try:
            if kept:
                self._sandbox.close_to_others()
            else:
                self._sandbox.remove()
        except OSError as error:  # the startd removes it when it starts the next time
            self._stumble(after_mishap(error), error)
        stored = StoredReport(
            schedd=self._spec.schedd,
            secret=self._spec.key.secret,
            report=self._reporter.report(body),
            sandbox=kept,
        )
        keep(stored, self._spec.state, self._line, self._hello(), self._lifeline_fd, self._orphaned)
        self._line.say(Over(stored))
        self._line.close()

    def _conclude(self, at: float) -> tuple[Exited | Failed, bool]:
        """
        What is to be reported, and whether outputs are kept for it.
        """
        family = self._family
        status = family.status if family is not None else None
        usage = self._usage(family.cpu_seconds() if family is not None else (0.0, 0.0))
        if self._ending is None and status and self._cgroup is not None and self._cgroup.oom_kills():
            self._ending = out_of_memory(self._spec.memory, usage.memory_kib)
        if self._ending is not None or status is None:
            ending = self._ending or Ending(hold=False, code=1007, reason="the job's process vanished")
            return self._evicted(ending, usage, ran=status is not None)
        code, trouble = os.waitstatus_to_exitcode(status), None
        try:
            results = collect(self._sandbox, self._job, self._before, code=code)
            if results.uploads:
                trouble = self._upload(results.uploads)
        except Exception as error:  # noqa: BLE001 - as in `run`: the job made what we stumbled over
            ending = after_collecting(error)
            self._stumble(ending, error)
            return ending.failed(usage), False
        if self._ending is not None:
            return self._ending.failed(usage), False
        return exited(code, results, trouble, at=at, usage=usage), results.kept

    def _evicted(self, ending: Ending, usage: Usage, *, ran: bool) -> tuple[Failed, bool]:
        """
        The same for a job that was ended: what it has made is sent for its next run, if it wants that and has one.
        """
        failed = ending.failed(usage)
        results = self._checkpoint.unsaved
        if not (ran and ending.runs_again and (self._job.is_saved or results is not None)):
            return failed, False
        try:
            if results is None:
                results = collect(self._sandbox, self._job, self._before, code=Purpose.EVICTION)
        except Exception as error:  # noqa: BLE001 - as below
            self._stumble(ending, error)
            return failed, False
        return msgspec.structs.replace(failed, outputs=results.files), results.kept

    def _upload(self, moves: list[Move]) -> Trouble | None:
        """
        Send results to URLs.  What holds the job is told with its other results; else the attempt has failed.
        """
        try:
            self._move(moves, upload=True)
        except TransferError as error:
            if error.hold:
                return Trouble(code=error.code, subcode=error.subcode, reason=str(error))
            self._ending = self._ending or after_transfer(error)
        return None

    def _usage(self, cpu: tuple[float, float]) -> Usage:
        return self._reporter.usage(self._sandbox, self._family, cpu)

    def _hello(self) -> Hello:
        return Hello(self._spec.id, os.getpid(), self._started, self._checkpoint.report, visits=True)
