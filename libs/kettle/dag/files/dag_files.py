"""
All files of one workflow on a disk, written by the process of its DAG job with the rights of the owner.

The process gives the events of the workflow from its first one, in their order, also when it was started again: they are
folded, and what is not in the files yet is written.  Calls block on the disk: use a thread.
"""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kettle.dag.files import rescue
from kettle.dag.files.appended_file import AppendedFile
from kettle.dag.files.dagman_out import Banner, DagmanOut, banner, stamped
from kettle.dag.files.jobstate_log import JobstateLog, last_number
from kettle.dag.files.moment_files import MomentFiles
from kettle.dag.files.node_log import script_events
from kettle.dag.files.progress import Progress
from kettle.dag.files.run import DagRun
from kettle.dag.files.run_lock import RunLock
from kettle.dag.structure import Dag
from kettle.userlog.appender import Appender
from kettle_wire.events.workflow import SavePointReached, WorkflowEnded, WorkflowEvent, WorkflowStopping
from kettle_wire.workflows import Plan


class _Whose(msgspec.Struct):
    dagman_id: str


class DagFiles:
    """
    The files of one run, opened and locked; that the process has started is written.

    Raises InUseError, and OSError for a log that cannot be written.  Any thread may call it.
    """

    def __init__(self, dag: Dag, plan: Plan, run: DagRun, now: float) -> None:
        self.progress: Final = Progress(plan)
        self._run: Final = run
        self._one_at_a_time: Final = threading.RLock()
        self._lock: Final = RunLock(run.lock)
        self._written: Final = self._lock.read(run.workflow, run.job)
        self._seen = 0
        """Events of this workflow that were given."""
        self._moment: Final = MomentFiles(dag, run, self.progress)
        states = None if dag.jobstate_log is None else run.directory / dag.jobstate_log
        self._goes_on = bool(self._written.sizes)
        """Until the first event that is not in the files: an earlier process may have written what belongs to it."""
        if not self._goes_on:
            run.nodes_log.write_bytes(b"")
            self._written.rescued_from = run.rescued_from
            self._written.rescue = rescue.next_number(
                run.primary, multi=run.is_multi, largest=run.largest_rescue
            )
            if states is not None and states.exists():
                self._written.jobstate_number = last_number(states.read_text(errors="replace"))
        self._out: Final = DagmanOut(self.progress)
        self._states: Final = JobstateLog(self.progress, self._written.jobstate_number)
        self._logs: Final = {path: self._opened(path) for path in (run.log, states) if path is not None}
        self._state_log: Final = None if states is None else self._logs[states]
        self._say(now, banner(_said(run)))
        self._save()

    @staticmethod
    def are_complete(run: DagRun) -> bool:
        """Whether a run has ended and everything of it is written: no process needs to do anything more."""
        try:
            said = msgspec.json.decode(run.metrics.read_bytes(), type=_Whose)
        except (FileNotFoundError, msgspec.MsgspecError):
            return False
        return said.dagman_id == str(run.workflow) and not run.lock.exists()

    @property
    def position(self) -> int:
        """So many events of the workflow are in the files."""
        return self._written.events

    def record(self, events: Sequence[tuple[float, WorkflowEvent]]) -> None:
        """
        Take the next events of the workflow with their times, beginning with its first one.

        Raises OSError for a log that cannot be written; a new object goes on from there.
        """
        with self._one_at_a_time:
            self._record(events)

    def refresh(self, now: float, *, is_held: bool = False) -> float | None:
        """
        Write the status files that are due.

        Returns in how many seconds to call again, or None: not before something happens.  `is_held`: the DAG job is held,
        which the status file says at once.  A file that cannot be written costs a line in `.dagman.out`, not the workflow.
        """
        with self._one_at_a_time:
            try:
                return self._moment.refresh(now, is_held=is_held)
            except OSError as error:
                self._say(now, [f"Warning: can't create {error.filename}: {error.strerror}"])
                self._save()
                return None

    def close(self, now: float) -> None:
        """The process ends; after the end of the workflow the last files are written, and the lock goes."""
        is_over = self.progress.exit_code is not None
        if is_over:
            self.refresh(now)
        self._release(over=is_over)

    def abandon(self) -> None:
        """Let go of everything and write nothing more, as when the process is killed."""
        self._release(over=False)

    def _record(self, events: Sequence[tuple[float, WorkflowEvent]]) -> None:
        log: list[str] = []
        states: list[str] = []
        nodes: list[str] = []
        for at, event in events:
            self._seen += 1
            self.progress.apply(at, event)
            lines = [*self._out.lines(at, event)]
            of_states = () if self._state_log is None else self._states.lines(at, event)
            states_now = [f"{line}\n" for line in of_states]
            if self._seen > self._written.events:
                nodes += script_events(self.progress, at, event)
                states += states_now
                log.append(stamped(at, [*lines, *self._carried_out(at, event)]))
        if self._seen > self._written.events:
            self._add_to_nodes_log(nodes)
            self._logs[self._run.log].append("".join(log))
            if self._state_log is not None:
                self._state_log.append("".join(states))
            self._written.events = self._seen
            self._save()

    def _release(self, *, over: bool) -> None:
        with self._one_at_a_time:
            for log in self._logs.values():
                log.close()
            self._lock.release(over=over)

    def _carried_out(self, at: float, event: WorkflowEvent) -> Iterator[str]:
        """Write the files that belong to one event; the lines about them."""
        match event:
            case WorkflowStopping() if event.status:
                yield from self._rescued(at)
            case SavePointReached():
                path = self._moment.write_save_point(event.node, at)
                yield f"Writing Save File to {self._named(path)}..."
            case WorkflowEnded():
                self._moment.write_metrics(event.exit_code)
                yield f"Wrote metrics file {self._run.metrics.name}."
                yield (
                    f"**** condor_scheduniv_exec.{self._run.workflow}.0 (condor_DAGMAN) pid {self._run.pid} "
                    f"EXITING WITH STATUS {event.exit_code}"
                )
            case _:
                pass

    def _rescued(self, at: float) -> Iterator[str]:
        if not self._written.rescue:
            yield "No rescue DAG written because DAGMAN_MAX_RESCUE_NUM is 0"
            return
        path = self._moment.write_rescue(self._written.rescue, at)
        yield f"Writing Rescue DAG to {self._named(path)}..."

    def _add_to_nodes_log(self, texts: list[str]) -> None:
        appender = Appender()
        if self._goes_on and texts:
            there = appender.tail(self._run.nodes_log, limit=1 << 20)
            texts = [text for text in texts if text not in there]
        self._goes_on = False
        if texts:
            appender.append(self._run.nodes_log, "".join(texts))

    def _say(self, at: float, lines: Iterator[str] | Sequence[str]) -> None:
        self._logs[self._run.log].append(stamped(at, lines))

    def _named(self, path: Path) -> Path:
        directory = self._run.directory
        return path.relative_to(directory) if path.is_relative_to(directory) else path

    def _opened(self, path: Path) -> AppendedFile:
        return AppendedFile(path, self._written.sizes.get(str(path)))

    def _save(self) -> None:
        self._written.sizes = {str(path): log.size for path, log in self._logs.items()}
        self._lock.write(self._written)


def _said(run: DagRun) -> Banner:
    return Banner(
        dag_job=f"{run.workflow}.0",
        program=run.program,
        version=run.version,
        pid=run.pid,
        arguments=run.arguments,
        dag_files=run.dag_files,
        nodes_log=str(run.nodes_log),
        rescue_file=(
            str(rescue.rescue_name(Path(run.dag_files[0]), run.rescued_from, multi=run.is_multi))
            if run.rescued_from
            else ""
        ),
    )
