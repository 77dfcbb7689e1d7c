"""One job from its order to its final report: a state machine around `poll`, in a process of its own."""

import os
import select
import sys
import time
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from kettle.execution.attempts import messages
from kettle.execution.attempts.job_spec import JobSpec, StoredReport
from kettle.execution.containers.policy import ContainerError
from kettle.execution.job_environment.job_ad import JobAd, long_form
from kettle.execution.job_environment.node import hosts_file
from kettle.execution.job_environment.quoting import QuotingError
from kettle.execution.processes.launch import LaunchError, launch
from kettle.execution.sandbox import manifest
from kettle.execution.sandbox.directory import Mark, Sandbox
from kettle.execution.sandbox.output_files import STDOUT, Purpose, TooManyResultsError, collect
from kettle.execution.system.cgroup import Cgroup
from kettle.execution.system.linux import become_subreaper, boottime, forget_peak
from kettle.transfer.plugin import Move
from kettle_services.starter.chirp.server import Proxy
from kettle_services.starter.deadlines import Deadlines
from kettle_services.starter.execution.core_files import cores_of, take_core
from kettle_services.starter.execution.job_remains import JobRemains
from kettle_services.starter.execution.process_tree import ProcessTree, empty_process_tree
from kettle_services.starter.execution.program import container_of, program_of
from kettle_services.starter.execution.stack_limit import stack_of
from kettle_services.starter.execution.suspension import JobSuspension
from kettle_services.starter.file_transfer.checkpoint_destination import Remote
from kettle_services.starter.file_transfer.output_streaming import Streams
from kettle_services.starter.file_transfer.plugin_process import TransferError, downloads
from kettle_services.starter.file_transfer.progress import Transfers
from kettle_services.starter.hooks import Hook, Updates
from kettle_services.starter.hooks_and_transfers import EndedError, HooksAndTransfers, Orders
from kettle_services.starter.job_access.request_queue import AccessRequestQueue
from kettle_services.starter.job_tokens import TokenFiles
from kettle_services.starter.published.publisher import Publisher
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
from kettle_services.starter.submit_side_questions import SubmitSideQuestions
from kettle_wire.attempts import AttemptResult, Ending, Usage
from kettle_wire.worker_reports import FinalReport, Measured, Report, not_made

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
        self._good = not last
        """Whether this process can run another job."""
        self._spec: JobSpec = order.spec
        self._job = JobAd(order.spec.ad)
        self._sandbox = Sandbox(f"{order.spec.execute}/{order.spec.id.sandbox}", order.spec.account)
        self._remains = JobRemains(order.spec, self._sandbox, supervisor.namespaces)
        self._cgroup = Cgroup(order.spec.cgroups, order.spec.id.name) if order.spec.cgroups else None
        self._tree: ProcessTree | None = None
        self._container: JobContainer | None = None
        self._before: dict[str, Mark] = {}
        self._started: Report | None = None
        self._ending: Ending | None = None
        self._deadlines = Deadlines(order.spec, self._job)
        self._reporter = ReportComposer(order.spec)
        self._suspension = JobSuspension(self._reporter.report)
        self._checkpoint = SelfCheckpoint(self._job, self._reporter.report, order.spec.checkpoint_pause)
        about = order.spec, self._job, self._sandbox, self._cgroup
        self._access_requests = AccessRequestQueue(*about, line.send)
        questions = SubmitSideQuestions(order.spec.shadow, line.send)
        self._tokens = TokenFiles(self._job, self._sandbox, questions)
        self._publisher = Publisher(order.spec, self._job, self._cgroup, questions)
        self._transfers = Transfers(order.spec, self._job, questions)
        orders = Orders(
            watch=self._watch, wait=self._wait, ending=lambda: self._ending, expose=self._remains.expose
        )
        moved = order.spec, self._job, self._cgroup, self._transfers
        self._hooks_and_transfers = HooksAndTransfers(*moved, orders)
        saved = [file for file in order.spec.inputs if file.saved]
        self._remote = Remote(self._job, self._sandbox, saved, self._hooks_and_transfers.move)
        self._updates = Updates(order.spec, self._job, self._cgroup)
        self._proxy = Proxy(order.spec, self._job, questions.ask, self._publisher)
        self._streams = Streams(self._job, self._sandbox, questions.ask)
        self._deferred = self._job.given("DeferralTime")

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
        while self._launch():
            assert self._tree is not None
            self._begin(self._tree)
            self._watch(self._tree)
            if not self._saved(self._tree):
                return

    def _launch(self) -> bool:
        """Have a main process, the first one or the next; whether there is one."""
        try:
            before = self._tree
            pid = self._start(again=before is not None)
            self._tree = before.successor(pid) if before is not None else ProcessTree(pid, self._cgroup)
        except TransferError as error:
            self._ending = self._ending or error.ending
        except (ContainerError, LaunchError, QuotingError, OSError) as error:
            self._ending = after_starting(error)
        except EndedError:
            pass  # before it had begun
        return self._ending is None

    def _stumble(self, ending: Ending, error: Exception) -> None:
        """The job pays for it, in words that its owner can read; the traceback goes to the log."""
        if not isinstance(error, TooManyResultsError):
            sys.excepthook(type(error), error, error.__traceback__)
        self._good = False
        self._ending = self._ending or ending

    # -- before ------------------------------------------------------------------------------------------------------

    def _start(self, *, again: bool = False) -> int:
        """The pid of the job's main process; `again`: in the sandbox as it is."""
        path = self._sandbox.path
        saved = any(file.saved and file.name == STDOUT for file in self._spec.inputs)
        appends = again or (saved and not self._job.flag("EraseOutputAndErrorOnRestart", default=False))
        if not again:
            self._open()
        contained = container_of(self._spec, self._job, path)
        if not again:
            self._prepare(contained[1] if contained is not None else None)
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
        """
        bystanders = empty_process_tree(self._cgroup)
        self._round(bystanders, -1, 0)
        if self._deferred and self._ending is None:
            self._deferred = False
            self._ending = after_waiting(self._job, time.time())
            at = self._job.number("DeferralTime") or 0.0
            while self._ending is None and (left := at - time.time()) > 0:
                left_ms = int(min(left, _LONGEST_WAIT_S) * 1000) + 1
                self._round(bystanders, -1, min(left_ms, self._timeout_ms()))
        if self._ending is not None:
            raise EndedError
        if pid:
            self._proxy.move_into(pid, self._sandbox)

    def _open(self) -> None:
        self._sandbox.make()
        if self._cgroup is not None:
            self._cgroup.make(memory_mib=self._spec.memory)
        for name, text in {".machine.ad": self._spec.machine_ad, **hosts_file(self._job)}.items():
            self._sandbox.write(name, text)
        self._hook("prepare_job_before_transfer")

    def _prepare(self, container: "JobContainer | None") -> None:
        but = container.brought() if container is not None else None
        for file in self._spec.inputs:
            if file is not but:
                self._sandbox.place(file)
        self._proxy.furnish(self._sandbox, contained=container is not None)
        self._hooks_and_transfers.have_tokens(self._tokens)
        if moves := downloads(self._job, self._sandbox.path):
            self._hooks_and_transfers.move(moves, upload=False)
        restored = self._remote.restore()
        self._hook("prepare_job")
        self._sandbox.write(".job.ad", long_form(self._job.whole))
        saved = {*(file.name for file in self._spec.inputs if file.saved), *restored}
        self._before = {name: mark for name, mark in self._sandbox.catalogue().items() if name not in saved}

    def _hook(self, hook: Hook) -> None:
        self._ending = self._hooks_and_transfers.run_prepare_hook(hook) or self._ending
        if self._ending is not None:
            raise EndedError

    def _wait(self, timeout_ms: int) -> None:
        self._round(empty_process_tree(self._cgroup), -1, min(timeout_ms, self._timeout_ms()))

    def _begin(self, tree: ProcessTree) -> None:
        self._deadlines.runs()
        if self._started is None:
            self._started = self._reporter.report(self._transfers.started(tree.pid))
            self._line.send(messages.ReportMessage(self._started))
        self._suspension.begin(tree)
        self._publisher.begin(tree)
        self._repeat()

    # -- while it runs -----------------------------------------------------------------------------------------------

    def _watch(self, tree: ProcessTree) -> None:
        """Returns when the main process has ended and was reaped."""
        handle = os.pidfd_open(tree.pid)
        try:
            self._listen(tree, handle)
        finally:
            os.close(handle)
        tree.reap()

    def _saved(self, tree: ProcessTree) -> bool:
        """Whether the program has ended with a checkpoint that is saved now, and is to be started again."""
        if self._ending is not None or not self._checkpoint.is_made(tree.status):
            return False
        self._publisher.close()
        tree.kill_all()
        self._updates.close()
        self._access_requests.close()  # its sessions are of this life
        self._suspension.pause(tree)
        self._deadlines.rests()
        usage = self._usage(tree.cpu_seconds())
        try:
            self._ending = self._checkpoint.take(self._sandbox, self._before, usage, self._remote)
        except TransferError as error:
            self._ending = self._ending or error.ending
        except EndedError:
            pass
        except Exception as error:  # noqa: BLE001 - as in `run`: the job made what we stumbled over
            self._stumble(after_collecting(error), error)
        while self._ending is None and not self._checkpoint.goes_on:
            self._checkpoint.say(self._line)
            self._round(tree, -1, min(self._checkpoint.timeout_ms(), self._timeout_ms()))
        return self._ending is None

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
        self._access_requests.register(poll)
        self._proxy.register(poll)
        self._publisher.register(poll)
        ready = {fd for fd, _ in poll.poll(0 if self._line.heard else timeout_ms)}
        if self._lifeline_fd in ready:
            self._orphaned()
        self._access_requests.go_on(ready)
        self._proxy.go_on(ready)
        if handle in ready:
            return True
        if self._line.heard or self._line.fileno() in ready:
            self._hear(tree)
        self._tick(tree)
        self._publisher.go_on(ready, still=self._suspension.wanted)
        self._access_requests.answer(self._tree, self._container, still=self._suspension.wanted)
        return False

    def _timeout_ms(self) -> int:
        parts = (self._access_requests, self._proxy, self._publisher, self._streams, self._tokens)
        moments = [self._deadlines.next(ends=self._ending is not None), *(part.due for part in parts)]
        moments += [self._line.retry_at] if self._line.retry_at is not None else []
        return max(0, int(min(min(moments) - boottime(), _LONGEST_POLL_S) * 1000) + 1)

    def _hear(self, tree: ProcessTree) -> None:
        for message in self._line.receive():
            match message:
                case messages.Renew(deadline=deadline):
                    self._deadlines.renew(deadline)
                case messages.EndJob():
                    self._end(tree, message.ending, hard=message.hard)
                case messages.Suspend() | messages.Continue():
                    self._still(tree, suspend=isinstance(message, messages.Suspend))
                case messages.CheckpointSaved(number=number):
                    self._checkpoint.confirm(number)
                case messages.AccessRequest():
                    self._access_requests.enqueue(message)
                case messages.Reply():
                    for asker in (self._tokens, self._publisher, self._transfers, self._proxy, self._streams):
                        asker.hear(message)
                case messages.RunJob():
                    pass  # said twice is said once

    def _still(self, tree: ProcessTree, *, suspend: bool) -> None:
        if not suspend:
            self._suspension.resume(tree)
        elif self._ending is None:
            self._suspension.suspend(tree)
        self._repeat()

    def _repeat(self) -> None:
        if (said := self._suspension.said) is not None:
            self._line.send(messages.ReportMessage(said))

    def _tick(self, tree: ProcessTree) -> None:
        self._line.reconnect(self._hello())
        self._streams.go_on()
        self._tokens.go_on()
        if self._deadlines.is_kill_due():
            tree.signal(9)
        if self._ending is None:
            for ending, hard in self._deadlines.over():
                self._end(tree, ending, hard=hard)
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
            self._end(tree, out_of_memory(self._spec.memory, memory), hard=True)
        if self._spec.enforce_disk and (disk := self._sandbox.size_kib()) > self._spec.disk:
            self._end(tree, out_of_disk(self._spec.disk, disk), hard=True)
        if self._deadlines.is_measurement_due():
            measured = Measured(usage=self._usage(tree.running_cpu_seconds()), told=self._proxy.told)
            self._line.send(messages.ReportMessage(self._reporter.report(measured)))
            self._updates.tell(tree, measured.usage)
            self._repeat()

    def _end(self, tree: ProcessTree, ending: Ending, *, hard: bool) -> None:
        """
        Start to end the job.  The first reason counts; a hard order also hurries one that was given time.

        What only prepares a job needs no time.
        """
        hard = hard or tree.status is not None
        first = self._ending is None
        if first:
            self._ending = ending
        if hard:
            self._deadlines.killed()
            tree.signal(9)
        elif first:
            self._deadlines.asked_to_end()
            tree.signal(self._job.kill_signal(ending.code))
            self._suspension.lift(tree)  # else it would not hear of it

    def _orphaned(self) -> NoReturn:
        self._publisher.close()
        tree = self._tree or empty_process_tree(self._cgroup)
        end_with_lifeline(tree, self._cgroup, self._container, self._sandbox, self._spec.execute)

    # -- after -------------------------------------------------------------------------------------------------------

    def _finish(self) -> bool:
        at = time.time()
        self._publisher.close()
        (self._tree or empty_process_tree(self._cgroup)).kill_all()
        if self._ending is not None:
            self._streams.finish(self._wait)
        self._updates.close()
        self._access_requests.close()
        self._proxy.close()
        body, kept = self._conclude(at)
        body = msgspec.structs.replace(body, told=self._proxy.told, result=self._transfers.told(body.result))
        if self._cgroup is not None:
            self._cgroup.remove()
        try:
            self._tokens.remove()
            self._remains.remove(results=kept)
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
        if self._container is not None:
            self._container.finish()  # an engine takes its time, and the report must not be lost in it
        rests = self._good and self._ending is None and self._container is None
        return self._line.send(messages.AttemptOver(stored, rests=rests)) and rests

    def _conclude(self, at: float) -> tuple[FinalReport, bool]:
        """What is to be reported, and whether outputs are kept for it."""
        tree = self._tree
        status = tree.status if tree is not None else None
        usage = self._usage(tree.cpu_seconds() if tree is not None else (0.0, 0.0))
        if self._ending is None and status and self._cgroup is not None and self._cgroup.oom_kills():
            self._ending = out_of_memory(self._spec.memory, usage.memory_kib)
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
            exit=exit_record(code, at=at, core=core, output=self._transfers.output),
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
            self._ending = self._ending or error.ending
        except EndedError:
            pass
        return None

    def _usage(self, cpu: tuple[float, float]) -> Usage:
        return self._reporter.usage(self._sandbox, self._tree, cpu)

    def _hello(self) -> messages.Hello:
        return messages.Hello(self._spec.id, os.getpid(), self._started, self._checkpoint.report, visits=True)
