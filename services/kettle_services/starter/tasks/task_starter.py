"""One job of several tasks, from its order to its final report."""

import errno
import os
import time
from typing import TYPE_CHECKING, Final, assert_never

import msgspec

from kettle.execution.attempts import messages
from kettle.execution.containers.policy import ContainerError
from kettle.execution.containers.runtimes.runtime import AREA
from kettle.execution.processes.launch import LaunchError, Program, launch
from kettle.execution.sandbox.directory import acting_as
from kettle.execution.sandbox.output_files import STDERR, STDOUT
from kettle.execution.system.linux import boottime, forget_peak
from kettle.jobs.nodes import NUMBER
from kettle.jobs.quoting import QuotingError
from kettle.tasks.nodes import on_node
from kettle.tasks.reading import TasksError, read_tasks
from kettle.tasks.sequence import (
    Exit,
    Fetch,
    Happened,
    Progress,
    RunTask,
    Send,
    StartSidecar,
    TimeLimit,
    after,
    next_action,
)
from kettle.transfer.file_lists import shown
from kettle_services.starter.domain import stimuli
from kettle_services.starter.execution.core_files import cores_of
from kettle_services.starter.execution.process_tree import empty_process_tree
from kettle_services.starter.execution.stack_limit import stack_of
from kettle_services.starter.file_transfer.plugin_process import TransferError
from kettle_services.starter.hooks_and_transfers import EndedError, StartRefusedError
from kettle_services.starter.reports.endings import after_starting
from kettle_services.starter.starter import Starter
from kettle_services.starter.tasks.file_steps import FileSteps
from kettle_services.starter.tasks.printed import append_printed
from kettle_services.starter.tasks.programs import (
    ad_of,
    container_of_task,
    image_of,
    in_runtime,
    program_of_task,
    refuse_shared,
)
from kettle_services.starter.tasks.sidecars import Sidecar, Sidecars
from kettle_services.starter.tasks.steps import StepLog, at_end
from kettle_services.starter.tasks.task_files import TaskFiles
from kettle_services.starter.tasks.task_processes import TaskProcesses
from kettle_wire.attempts import Ending
from kettle_wire.codes import HoldCode
from kettle_wire.tasks import ATTRIBUTE, Step, TaskList
from kettle_wire.worker_reports import FinalReport

if TYPE_CHECKING:
    from kettle.execution.containers.job_container import JobContainer
    from kettle.execution.containers.runtimes.runtime import ContainerSpec
    from kettle_services.starter.execution.process_tree import ProcessTree
    from kettle_services.starter.reports.final import StarterProcess

_CONCLUDED: Final = 8
"""How far an exit code is shifted in a wait status."""
_KIB: Final = 1024


class _Launched(msgspec.Struct, frozen=True):
    """A task's process, and its container."""

    pid: int
    container: "JobContainer | None" = None


class TaskStarter(Starter):
    """
    The state of one job of several tasks on this machine: the life of any job, with another program after each end.
    """

    def __init__(self, supervisor: "StarterProcess", order: messages.RunJob, *, last: bool) -> None:
        # What containers and sidecars have left in this process, no other job is to meet.
        super().__init__(supervisor, order, last=True)
        self._steps = StepLog(
            lambda body: self._line.send(messages.ReportMessage(self._reporter.report(body)))
        )
        self._sidecars = Sidecars(self._steps)
        self._processes: TaskProcesses | None = None
        self._limit = TimeLimit(0.0, boottime())

    def _live(self) -> None:
        try:
            listed = read_tasks(self._job.value(ATTRIBUTE))
            if (node := self._job.number(NUMBER)) is not None:
                listed = on_node(listed, int(node))
        except TasksError as error:  # it was edited, or comes from an access point that does not look
            reason = f"cannot start the job: {error}"
            ending = Ending(code=HoldCode.FailedToCreateProcess, subcode=errno.EINVAL, reason=reason)
            self._feed(stimuli.AttemptFailed(ending))
            return
        try:
            self._carry_out(listed)
        except (TransferError, StartRefusedError) as error:
            self._feed(stimuli.AttemptFailed(error.ending))
        except (ContainerError, LaunchError, QuotingError, OSError) as error:
            self._feed(stimuli.AttemptFailed(after_starting(error)))
        except EndedError:
            self._feed(stimuli.WorkAbandoned())

    def _carry_out(self, listed: TaskList) -> None:
        """
        All tasks, to the job's exit code.

        Raises:
            TransferError, ContainerError, LaunchError, QuotingError, OSError: not the tasks, but what is around them failed.
            StartRefusedError: a hook says that the job is not to run here, or it is too late for its time.
            EndedError: the job was ordered to end.
        """
        self._limit = TimeLimit(listed.wall_time, boottime())
        refuse_shared(self._job)
        self._preparation.make_sandbox()
        self._before = self._preparation.fill(self._first_container(listed))
        self._have_streams()
        progress = Progress()
        while not isinstance(action := next_action(listed, progress), Exit):
            progress = after(listed, progress, self._do(listed, action))
            if self._ending is not None:
                raise EndedError
        self._tree = self._family()
        self._tree.status = action.code << _CONCLUDED
        self._feed(stimuli.TasksFinished())

    def _do(self, listed: TaskList, action: Fetch | RunTask | StartSidecar | Send) -> Happened:
        match action:
            case Fetch():
                happened = self._files().fetch(listed, self._limit)
                self._before |= self._sandbox.catalogue()  # what came is no result
                return happened
            case StartSidecar(task=number):
                return self._start_sidecar(listed, number)
            case RunTask(task=number, retry=retry):
                return self._run_task(listed, number, retry)
            case Send():
                self._sidecars.end(self._family(), self._job, self._spec.kill_timeout, self._round_of)
                happened, returned = self._files().send(listed)
                if listed.outputs and not self._job.given("TransferOutput"):
                    self._job.change({"TransferOutput": ",".join(returned)})
                return happened
            case _:
                assert_never(action)

    def _first_container(self, listed: TaskList) -> "JobContainer | None":
        """
        The first that a task will have: its image is unpacked from where it lies, and the sandbox has no copy of it.
        """
        for task in listed.tasks:
            ad = ad_of(self._job, task)
            if (found := container_of_task(self._spec, ad, listed, self._sandbox.path, AREA)) is not None:
                return found[1]
        return None

    def _have_streams(self) -> None:
        """
        What all tasks print into is there before the first one: perhaps none can be started.  Raises OSError.
        """
        erased = self._job.flag("EraseOutputAndErrorOnRestart", default=False)
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_TRUNC if erased else 0)
        with acting_as(self._spec.account):
            for stream, name in (("Out", STDOUT), ("Err", STDERR)):
                if self._job.stream(stream):
                    os.close(os.open(f"{self._sandbox.path}/{name}", flags, 0o644))

    def _files(self) -> FileSteps:
        path = self._sandbox.path
        files = TaskFiles(self._spec, self._cgroup, path, self._follow_helper)
        return FileSteps(path, files, self._hooks_and_transfers, self._steps, self._heed_orders)

    # -- tasks -------------------------------------------------------------------------------------------------------

    def _start_sidecar(self, listed: TaskList, number: int) -> Happened:
        """Failed: it has not begun, which counts for nothing."""
        began = Step(kind="sidecar", outcome="begun", task=number, began=time.time())
        launched = self._launched(listed, number, began, f"{AREA}.{number}")
        if launched is None:
            return "failed"
        self._steps.add(began)
        self._sidecars.add(Sidecar(launched.pid, began, launched.container), self._family())
        return "done"

    def _run_task(self, listed: TaskList, number: int, retry: int) -> Happened:
        """One try of a task, to its end."""
        task = listed.tasks[number]
        began = Step(kind="task", outcome="begun", task=number, retry=retry, began=time.time())
        if boottime() >= self._limit.until:
            reason = self._limit.reason
            self._steps.add(msgspec.structs.replace(began, outcome="ended", ended=time.time(), reason=reason))
            return "late"
        launched = self._launched(listed, number, began, AREA)
        if launched is None:
            return "failed"
        processes = self._family().successor(launched.pid)
        self._container = launched.container
        began = msgspec.structs.replace(began, began=time.time())
        self._steps.add(began)
        self._tree = self._processes = processes
        first = self._machine.started is None
        self._feed(stimuli.ProgramStarted() if first else stimuli.TaskStarted())
        late = self._follow_task(processes)
        if self._ending is not None:
            self._steps.add(at_end(began, processes, self._ending.reason))
            raise EndedError
        self._parts.access.close()
        self._feed(stimuli.TaskEnded())
        processes.end_task(self._sidecars.living(processes))
        if launched.container is not None:
            launched.container.clear()
        if task.stdout:
            self._copy(task.stdout)
        ended = at_end(began, processes, self._limit.reason if late else "")
        self._steps.add(ended)
        return "late" if late else "done" if ended.outcome == "done" else "failed"

    def _follow_task(self, processes: TaskProcesses) -> bool:
        """Return when the task's process has ended and was reaped; whether its time was over before."""
        handle, late, kill_at = os.pidfd_open(processes.pid), False, float("inf")
        try:
            while not self._round_of(processes, handle, kill_at if late else self._limit.until):
                now = boottime()
                if late and now >= kill_at:
                    kill_at = float("inf")
                    processes.signal_task(9, self._sidecars.living(processes))
                elif not late and now >= self._limit.until:
                    late, kill_at = True, now + self._job.kill_timeout(self._spec.kill_timeout)
                    processes.signal_task(self._job.kill_signal(0), self._sidecars.living(processes))
        finally:
            os.close(handle)
        processes.reap()
        return late

    def _round_of(self, tree: "ProcessTree", handle: int, until: float) -> bool:
        """Whether `handle` is readable; if not, everything that is due was done, at the latest at `until`."""
        left_ms = int(min(max(0.0, until - boottime()), 3600.0) * 1000) + 1
        return self._round(tree, handle, min(self._timeout_ms(), left_ms))

    def _launched(self, listed: TaskList, number: int, began: Step, area: str) -> _Launched | None:
        """
        A task that runs; None: it cannot, which is its own fault and was reported.

        Raises:
            ContainerError, LaunchError, OSError: it is the machine's.
            EndedError: the job was ordered to end.
        """
        try:
            launched = self._start_task(listed, number, area)
        except (ContainerError, LaunchError, QuotingError) as error:
            ending = after_starting(error)
            if not ending.holds:
                raise
            self._steps.add(
                msgspec.structs.replace(began, outcome="failed", ended=time.time(), reason=ending.reason)
            )
            if area == AREA and self._container is not None:
                self._container.clear()
            return None
        return launched

    def _start_task(self, listed: TaskList, number: int, area: str) -> _Launched:
        """Raises what `_launched` does, and what is the task's own fault."""
        task = listed.tasks[number]
        ad, path = ad_of(self._job, task), self._sandbox.path
        if task.stdout:
            self._forget(task.stdout)
        login = self._parts.tokens.logins.get(task.login, "")
        contained = container_of_task(self._spec, ad, listed, path, area, login)
        if contained is None:
            program = program_of_task(self._spec, ad, listed, number, path)
            program = msgspec.structs.replace(program, appends=True)
            if task.type != "sidecar":
                self._parts.access.program = program
            self._remains.enclosed(program.enclosure)
            self._check()
            forget_peak()
            with cores_of(self._job), stack_of(self._job):
                return _Launched(launch(program, self._cgroup, self._supervisor.namespaces))
        request, container = contained
        if area == AREA:
            self._container = container
        program = program_of_task(self._spec, ad, listed, number, path, request.directory)
        program = msgspec.structs.replace(program, appends=True)
        box = self._pulled(container, program, image_of(task), number)
        runtime = box.runtime.name if box.runtime is not None else ""
        box = msgspec.structs.replace(box, program=in_runtime(box.program, runtime))
        forget_peak()
        return _Launched(container.start(box, self._cgroup, self._check), container)

    def _pulled(
        self, container: "JobContainer", program: Program, image: str, number: int
    ) -> "ContainerSpec":
        """The container before it is started, with its image; to get one is a step, whose time is free."""
        began, started = time.time(), boottime()
        step = Step(kind="pull", outcome="failed", task=number, name=shown(image), began=began)
        try:
            with container.preparing(program) as builder:
                self._listen(empty_process_tree(self._cgroup), builder.fileno())
                self._check()
                box = container.prepared(builder)
        except ContainerError as error:
            if image:
                self._steps.add(msgspec.structs.replace(step, ended=time.time(), reason=str(error)))
            raise
        finally:
            self._limit.pulled(boottime() - started)
        outcome = "done" if box.fresh else "cached"
        if image:
            step = msgspec.structs.replace(step, outcome=outcome, ended=time.time(), bytes=box.size)
            self._steps.add(step)
        return box

    def _forget(self, name: str) -> None:
        """What an earlier try has printed is not what this one prints."""
        with acting_as(self._spec.account):
            try:
                os.unlink(f"{self._sandbox.path}/{name}")  # noqa: PTH108 - a string
            except FileNotFoundError:
                pass
            except OSError as error:
                why = f"cannot open {name} as standard output: {error.strerror}"
                raise LaunchError("output", error.errno or 0, why) from error

    def _copy(self, name: str) -> None:
        """What a task has printed into a file of its own comes behind what the job has printed, too."""
        if not self._job.stream("Out"):
            return
        path = self._sandbox.path
        with acting_as(self._spec.account):
            append_printed(f"{path}/{name}", f"{path}/{STDOUT}", self._spec.disk * _KIB)

    def _family(self) -> TaskProcesses:
        """The processes of the job so far."""
        if self._processes is None:
            self._processes = TaskProcesses(0, self._cgroup)
            self._processes.status = 0  # never signalled: to the kernel that number means ourselves
        return self._processes

    def _heed_orders(self) -> None:
        if self._ending is not None:
            raise EndedError

    # -- reports -----------------------------------------------------------------------------------------------------

    def _tick(self, tree: "ProcessTree") -> None:
        super()._tick(tree)
        self._steps.say()

    def _timeout_ms(self) -> int:
        return min(super()._timeout_ms(), self._steps.timeout_ms())

    def _conclude(self, at: float) -> tuple[FinalReport, bool]:
        self._sidecars.over(self._family())
        body, kept = super()._conclude(at)
        return msgspec.structs.replace(body, steps=self._steps.all), kept
