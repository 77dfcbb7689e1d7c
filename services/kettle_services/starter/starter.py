"""
One job from its order to its final report, in a process of its own: what its state machine says is done, around `poll`.

What is done in which phase, and what ends it, is in `domain/table.py`; here is how it is done.
"""

import os
import select
import sys
import time
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from kettle.execution.attempts import messages
from kettle.execution.attempts.job_spec import JobSpec, StoredReport
from kettle.execution.containers.policy import ContainerError
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.processes.launch import LaunchError, launch
from kettle.execution.sandbox import manifest
from kettle.execution.sandbox.directory import Mark, Sandbox
from kettle.execution.sandbox.output_files import STDOUT, Purpose, TooManyResultsError, collect
from kettle.execution.system.cgroup import Cgroup
from kettle.execution.system.linux import become_subreaper, boottime, forget_peak
from kettle.jobs.quoting import QuotingError
from kettle.transfer.plugin import Move
from kettle_services.starter.attempt_machine import AttemptMachine
from kettle_services.starter.deadlines import Deadlines
from kettle_services.starter.domain import stimuli
from kettle_services.starter.domain.instructions import Work
from kettle_services.starter.domain.state import StarterPhase, StarterState
from kettle_services.starter.domain.table import RESTS
from kettle_services.starter.execution.core_files import cores_of, take_core
from kettle_services.starter.execution.job_remains import JobRemains
from kettle_services.starter.execution.process_tree import ProcessTree, empty_process_tree
from kettle_services.starter.execution.program import container_of, owner_of, program_of
from kettle_services.starter.execution.stack_limit import stack_of
from kettle_services.starter.file_transfer.checkpoint_destination import Remote
from kettle_services.starter.file_transfer.plugin_process import TransferError
from kettle_services.starter.hooks_and_transfers import (
    EndedError,
    HooksAndTransfers,
    Orders,
    StartRefusedError,
)
from kettle_services.starter.parts import StarterParts
from kettle_services.starter.preparation import JobPreparation
from kettle_services.starter.reports.composition import ReportComposer, ended, exit_record
from kettle_services.starter.reports.endings import (
    after_collecting,
    after_mishap,
    after_starting,
    after_waiting,
    out_of_disk,
    out_of_memory,
    runs_again,
    vanished,
)
from kettle_services.starter.reports.final import StarterProcess, end_with_lifeline
from kettle_services.starter.self_checkpoint import SelfCheckpoint
from kettle_wire.attempts import AttemptResult, Ending, Usage
from kettle_wire.worker_reports import FinalReport, Measured, not_made

if TYPE_CHECKING:
    from kettle.execution.containers.job_container import JobContainer

_LONGEST_POLL_S: Final = 3600.0
_LONGEST_WAIT_S: Final = 30.0
"""For a time on the wall's clock, which may be set."""


class Starter:
    """The state of one job on this machine."""

    def __init__(self, supervisor: StarterProcess, order: messages.RunJob, *, last: bool) -> None:
        self._supervisor = supervisor
        self._line = line = supervisor.line
        self._lifeline_fd = supervisor.lifeline_fd
        self._spec: JobSpec = order.spec
        self._job = JobAd(order.spec.ad)
        attempt = order.spec.id
        self._sandbox = Sandbox(f"{order.spec.execute}/{attempt.sandbox}", order.spec.account)
        kept = supervisor.namespaces, supervisor.spare
        self._remains = JobRemains(order.spec, self._sandbox, *kept, owner_of(self._job))
        self._cgroup = Cgroup(order.spec.cgroups, attempt.name) if order.spec.cgroups else None
        self._tree: ProcessTree | None = None
        self._container: JobContainer | None = None
        self._before: dict[str, Mark] = {}
        self._deadlines = Deadlines(order.spec, self._job)
        self._reporter = ReportComposer(order.spec)
        self._checkpoint = SelfCheckpoint(self._job, self._reporter.report, order.spec.checkpoint_pause)
        self._parts = StarterParts(order.spec, self._job, self._sandbox, self._cgroup, line)
        self._machine = AttemptMachine(
            order.spec,
            self._job,
            self._deadlines,
            self._reporter,
            self._parts,
            line,
            StarterState(reusable=not last),
        )
        orders = Orders(
            watch=self._follow_helper,
            wait=self._wait,
            ending=lambda: self._ending,
            expose=self._remains.expose,
        )
        moved = order.spec, self._job, self._cgroup, self._parts.transfers
        self._hooks_and_transfers = HooksAndTransfers(*moved, orders)
        saved = [file for file in order.spec.inputs if file.saved]
        self._remote = Remote(self._job, self._sandbox, saved, self._hooks_and_transfers.move)
        about = order.spec, self._job, self._sandbox, self._remains, self._cgroup, self._parts
        self._preparation = JobPreparation(*about, self._hooks_and_transfers, self._remote)
        self._deferred = self._job.given("DeferralTime")

    @property
    def _ending(self) -> Ending | None:
        """Why the attempt is to end."""
        return self._machine.state.ending

    @property
    def _phase(self) -> StarterPhase:
        return self._machine.state.phase

    def _feed(self, stimulus: stimuli.Stimulus, tree: ProcessTree | None = None) -> None:
        """Something has happened, by default to the job's own processes."""
        self._machine.feed(stimulus, tree or self._tree or empty_process_tree(self._cgroup))

    def run_job(self) -> bool:
        """
        All of it; returns when the final report is on disk and nothing else is left to do: whether the startd was told
        that this process waits for another job.
        """
        self._line.settle(self._spec.state)
        self._line.send(self._hello())
        become_subreaper()
        if os.geteuid() == 0:
            os.setgroups(self._spec.account.groups if self._spec.account else [])  # as whom we act has these
        try:
            self._live()
        except Exception as error:  # noqa: BLE001 - the runner of this process: a job must not be able to end it
            self._stumble(after_mishap(error), error)
        return self._finish()

    def _live(self) -> None:
        """From an empty directory to the end of the job's main process, by way of its checkpoints."""
        while (work := self._machine.work) is not Work.COLLECT:
            match work:
                case Work.START | Work.START_AGAIN:
                    self._launch(again=work is Work.START_AGAIN)
                case Work.WATCH:
                    self._watch()
                case Work.SAVE_CHECKPOINT:
                    self._save_checkpoint()
                case _:
                    raise AssertionError(f"nothing of a job is left to {work}")

    def _launch(self, *, again: bool) -> None:
        """Have a main process, the first one or the next."""
        try:
            pid = self._start(again=again)
        except (TransferError, StartRefusedError) as error:
            self._feed(stimuli.AttemptFailed(error.ending))
        except (ContainerError, LaunchError, QuotingError, OSError) as error:
            self._feed(stimuli.AttemptFailed(after_starting(error)))
        except EndedError:
            self._feed(stimuli.WorkAbandoned())
        else:
            before = self._tree
            self._tree = ProcessTree(pid, self._cgroup) if before is None else before.successor(pid)
            self._feed(stimuli.ProgramStartedAgain() if again else stimuli.ProgramStarted())

    def _stumble(self, ending: Ending, error: Exception) -> None:
        """The job pays for it, in words that its owner can read; the traceback goes to the log."""
        if not isinstance(error, TooManyResultsError):
            sys.excepthook(type(error), error, error.__traceback__)
        self._feed(stimuli.StarterStumbled(ending))

    # -- before ------------------------------------------------------------------------------------------------------

    def _start(self, *, again: bool = False) -> int:
        """The pid of the job's main process; `again`: in the sandbox as it is."""
        path = self._sandbox.path
        saved = any(file.saved and file.name == STDOUT for file in self._spec.inputs)
        appends = again or (saved and not self._job.flag("EraseOutputAndErrorOnRestart", default=False))
        if not again:
            self._preparation.make_sandbox()
        contained = container_of(self._spec, self._job, path)
        if not again:
            self._before = self._preparation.fill(contained[1] if contained is not None else None)
        elif self._container is not None:
            self._container.clear()
        if contained is None:
            program = program_of(self._spec, self._job, path)
            self._remains.enclosed(program.enclosure)
            manifest.write_before(self._sandbox, self._job, program.environment)
            self._check()
            forget_peak()
            with cores_of(self._job), stack_of(self._job):
                program = msgspec.structs.replace(program, appends=appends)
                return launch(program, self._cgroup, self._supervisor.namespaces)
        request, self._container = contained
        program = program_of(self._spec, self._job, path, request.directory)
        manifest.write_before(self._sandbox, self._job, program.environment)
        program = msgspec.structs.replace(program, appends=appends)
        with self._container.preparing(program) as builder:
            self._listen(empty_process_tree(self._cgroup), builder.fileno())
            self._check()
            box = self._container.prepared(builder)
        forget_peak()
        return self._container.start(box, self._cgroup, self._check)

    def _check(self, pid: int = 0) -> None:
        """
        Preparing takes its time: what was ordered meanwhile, and the end of the lease, keep the job from being started.
        One that is to start at a time of its own waits for that here, once.  With a process of its container the job can
        be met there.

        Raises:
            EndedError: it must not start any more.
            StartRefusedError: it is too late for its time.
        """
        bystanders = empty_process_tree(self._cgroup)
        self._round(bystanders, -1, 0)
        if self._deferred and self._ending is None:
            self._deferred = False
            self._defer(bystanders)
        if self._ending is not None:
            raise EndedError
        if pid:
            self._parts.proxy.move_into(pid, self._sandbox)

    def _defer(self, bystanders: ProcessTree) -> None:
        """Wait for the time of the job, or for the end of the attempt."""
        if (late := after_waiting(self._job, time.time())) is not None:
            raise StartRefusedError(late)
        self._feed(stimuli.StartDeferred(), bystanders)
        at = self._job.number("DeferralTime") or 0.0
        while self._phase is StarterPhase.DEFERRED and (left := at - time.time()) > 0:
            left_ms = int(min(left, _LONGEST_WAIT_S) * 1000) + 1
            self._round(bystanders, -1, min(left_ms, self._timeout_ms()))
        if self._phase is StarterPhase.DEFERRED:
            self._feed(stimuli.StartTimeArrived(), bystanders)

    def _wait(self, timeout_ms: int) -> None:
        self._round(empty_process_tree(self._cgroup), -1, min(timeout_ms, self._timeout_ms()))

    # -- while it runs -----------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Returns when the main process has ended and was reaped."""
        assert self._tree is not None
        self._follow(self._tree)
        self._feed(stimuli.ProgramEnded(checkpoint=self._checkpoint.is_made(self._tree.status)))

    def _follow_helper(self, tree: ProcessTree) -> None:
        """Returns when a process that works for the job has ended and was reaped."""
        self._feed(stimuli.HelperStarted(), tree)
        try:
            self._follow(tree)
        finally:
            self._feed(stimuli.HelperEnded(), tree)

    def _follow(self, tree: ProcessTree) -> None:
        handle = os.pidfd_open(tree.pid)
        try:
            self._listen(tree, handle)
        finally:
            os.close(handle)
        tree.reap()

    def _save_checkpoint(self) -> None:
        """Have the program's checkpoint saved, and wait until it is to be started again."""
        tree = self._tree
        assert tree is not None
        try:
            usage = self._usage(tree.cpu_seconds())
            failure = self._checkpoint.take(self._sandbox, self._before, usage, self._remote)
        except TransferError as error:
            failure = error.ending
        except EndedError:
            failure = None
        except Exception as error:  # noqa: BLE001 - as in `run_job`: the job made what we stumbled over
            self._stumble(after_collecting(error), error)
            return
        if failure is not None:
            self._feed(stimuli.AttemptFailed(failure))
            return
        while self._phase is StarterPhase.CHECKPOINTING and not self._checkpoint.goes_on:
            self._checkpoint.say(self._line)
            self._round(tree, -1, min(self._checkpoint.timeout_ms(), self._timeout_ms()))
        goes_on = self._phase is StarterPhase.CHECKPOINTING
        self._feed(stimuli.CheckpointFinished() if goes_on else stimuli.WorkAbandoned())

    def _listen(self, tree: ProcessTree, handle: int) -> None:
        """Look after the family, and hear what is ordered, until `handle` is readable."""
        while not self._round(tree, handle, self._timeout_ms()):
            pass

    def _round(self, tree: ProcessTree, handle: int, timeout_ms: int) -> bool:
        """Whether `handle` (-1: there is none) is readable; if not, everything else that is due was done."""
        poll = select.poll()
        for fd in (handle, self._lifeline_fd):
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        self._line.register(poll)
        self._parts.register(poll)
        ready = {fd for fd, _ in poll.poll(0 if self._line.heard else timeout_ms)}
        if self._lifeline_fd in ready:
            self._orphaned()
        self._parts.serve_connections(ready)
        if handle in ready:
            return True
        if self._line.heard or self._line.fileno() in ready:
            self._hear(tree)
        self._tick(tree)
        self._parts.answer(ready, self._tree, self._container, still=self._machine.state.suspends)
        return False

    def _timeout_ms(self) -> int:
        due = min(self._deadlines.next(ends=self._ending is not None), self._parts.due)
        if self._line.retry_at is not None:
            due = min(due, self._line.retry_at)
        return max(0, int(min(due - boottime(), _LONGEST_POLL_S) * 1000) + 1)

    def _hear(self, tree: ProcessTree) -> None:
        for message in self._line.receive():
            match message:
                case messages.Renew(deadline=deadline):
                    self._deadlines.renew(deadline)
                case messages.EndJob():
                    self._feed(stimuli.EndRequested(message.ending, message.hard), tree)
                case messages.Suspend():
                    self._feed(stimuli.SuspendRequested(), tree)
                case messages.Continue():
                    self._feed(stimuli.ContinueRequested(), tree)
                case messages.CheckpointSaved(number=number):
                    self._checkpoint.confirm(number)
                case messages.AccessRequest():
                    self._parts.access.enqueue(message)
                case messages.Reply():
                    self._parts.hear(message)
                case messages.RunJob():
                    pass  # said twice is said once

    def _tick(self, tree: ProcessTree) -> None:
        if self._line.retry_at is not None:
            self._line.reconnect(self._hello())
        self._parts.go_on()
        if self._deadlines.is_kill_due():
            self._feed(stimuli.KillTimeOver(), tree)
        if self._ending is None:
            for ending, hard in self._deadlines.over():
                self._feed(stimuli.EndRequested(ending, hard), tree)
        if self._deadlines.is_look_due():
            if tree.status is None:
                self._monitor(tree)
            self._deadlines.looked()

    def _monitor(self, tree: ProcessTree) -> None:
        tree.reap()
        if tree.status is not None:
            return
        memory = tree.measure()
        enforced = self._cgroup is not None and self._cgroup.limits_memory
        too_much = self._spec.memory and memory > self._spec.memory * 1024
        if too_much and not enforced and tree.measured_well:
            self._feed(stimuli.EndRequested(out_of_memory(self._spec.memory, memory), hard=True), tree)
        if self._spec.enforce_disk and (disk := self._sandbox.size_kib()) > self._spec.disk:
            self._feed(stimuli.EndRequested(out_of_disk(self._spec.disk, disk), hard=True), tree)
        if self._deadlines.is_measurement_due():
            measured = Measured(usage=self._usage(tree.running_cpu_seconds()), told=self._parts.proxy.told)
            self._line.send(messages.ReportMessage(self._reporter.report(measured)))
            self._parts.updates.tell(tree, measured.usage)
            self._machine.repeat_suspension()

    def _orphaned(self) -> NoReturn:
        self._feed(stimuli.LifelineLost())
        self._parts.publisher.close()
        tree = self._tree or empty_process_tree(self._cgroup)
        end_with_lifeline(tree, self._cgroup, self._container, self._sandbox, self._spec.execute)

    # -- after -------------------------------------------------------------------------------------------------------

    def _finish(self) -> bool:
        if self._ending is not None:
            self._parts.streams.finish(self._wait)
        self._parts.proxy.close()
        body, kept = self._conclude(self._machine.ended_at)
        result = self._parts.transfers.told(body.result)
        body = msgspec.structs.replace(body, told=self._parts.proxy.told, result=result)
        self._feed(stimuli.ResultsCollected())
        over = stimuli.ReportStored(traces=self._container is not None)
        if self._cgroup is not None:
            self._cgroup.remove()
        try:
            self._parts.tokens.remove()
            self._remains.remove(results=kept, follows=RESTS.holds(self._machine.state, over))
        except OSError as error:  # the startd removes it when it starts the next time
            self._stumble(after_mishap(error), error)
        stored = StoredReport(
            schedd=self._spec.schedd,
            secret=self._spec.key.secret,
            report=self._reporter.report(body),
            sandbox=kept,
            keeps=kept and self._job.keeps_outputs,
        )
        self._supervisor.store_final_report(stored, self._spec.state, self._hello(), self._orphaned)
        self._feed(over)
        if self._container is not None:
            self._container.finish()  # an engine takes its time, and the report must not be lost in it
        rests = self._machine.work is Work.REST
        return self._line.send(messages.AttemptOver(stored, rests=rests)) and rests

    def _conclude(self, at: float) -> tuple[FinalReport, bool]:
        """What is to be reported, and whether outputs are kept for it."""
        tree = self._tree
        status = tree.status if tree is not None else None
        usage = self._usage(tree.cpu_seconds() if tree is not None else (0.0, 0.0))
        if self._ending is None and status and self._cgroup is not None and self._cgroup.oom_kills():
            self._feed(stimuli.AttemptFailed(out_of_memory(self._spec.memory, usage.memory_kib)))
        if status is not None:
            self._hooks_and_transfers.run_exit_hook(os.waitstatus_to_exitcode(status), usage)
        if self._ending is not None or status is None:
            return self._evicted(self._ending or vanished(), usage, ran=status is not None)
        code, ending = os.waitstatus_to_exitcode(status), None
        try:
            core = take_core(self._sandbox, self._job, self._before, self._spec.job, status)
            results = collect(self._sandbox, self._job, self._before, code=code)
            if results.uploads:
                ending = self._upload(results.uploads)
        except Exception as error:  # noqa: BLE001 - as in `run`: the job made what we stumbled over
            ending = after_collecting(error)
            self._stumble(ending, error)
            return ended(ending, usage), False
        if self._ending is not None:
            return ended(self._ending, usage), False
        result = AttemptResult(
            exit=exit_record(code, at=at, core=core, output=self._parts.transfers.output),
            ending=ending or (not_made(results.missing) if results.missing else None),
            usage=msgspec.structs.replace(usage, sent=results.sent),
        )
        return FinalReport(result=result, outputs=results.files), results.kept

    def _evicted(self, ending: Ending, usage: Usage, *, ran: bool) -> tuple[FinalReport, bool]:
        """What a job that was ended has made is sent for its next run, if it wants that and has one."""
        without = ended(ending, usage)
        results = self._checkpoint.unsaved
        if not (ran and runs_again(ending) and (self._job.is_saved or results is not None)):
            return without, False
        try:
            if results is None:
                results = collect(self._sandbox, self._job, self._before, code=Purpose.EVICTION)
        except Exception as error:  # noqa: BLE001 - as below
            self._stumble(ending, error)
            return without, False
        return msgspec.structs.replace(without, outputs=results.files), results.kept

    def _upload(self, moves: list[Move]) -> Ending | None:
        """
        Send results to URLs.  What holds the job is told with its other results; else the attempt has failed.
        """
        try:
            self._hooks_and_transfers.move(moves, upload=True)
        except TransferError as error:
            if error.ending.holds:
                return error.ending
            self._feed(stimuli.AttemptFailed(error.ending))
        except EndedError:
            pass
        return None

    def _usage(self, cpu: tuple[float, float]) -> Usage:
        return self._reporter.usage(self._sandbox, self._tree, cpu)

    def _hello(self) -> messages.Hello:
        return messages.Hello(
            self._spec.id, os.getpid(), self._machine.started, self._checkpoint.report, visits=True
        )
