"""
The files that say how a workflow is at a moment; each is written as a whole, beside its name, and renamed.

Calls block on the disk.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kettle.dag.files import dot, node_status, rescue
from kettle.dag.files.appended_file import replace
from kettle.dag.files.metrics import Metrics
from kettle.dag.files.metrics import text as metrics_text
from kettle.dag.files.node_status import NodeLine
from kettle.dag.files.progress import Progress
from kettle.dag.files.rescue import RescueNode
from kettle.dag.files.run import DagRun
from kettle.dag.graph import levels
from kettle.dag.structure import Dag, NodeKind
from kettle_wire.codes import DagStatus, NodeStatus

DOT_SECONDS: Final = 5.0
"""So often, at most, a picture of the graph is drawn again."""
_AT_WORK: Final = frozenset({NodeStatus.PRERUN, NodeStatus.SUBMITTED, NodeStatus.POSTRUN})
_NOTES: Final = {
    DagStatus.OK: "success", DagStatus.ABORTED: "aborted", DagStatus.REMOVED: "removed", DagStatus.CYCLE: "cycle",
}  # fmt: skip
"""What the status file says of a workflow that is over; all else has failed."""


class MomentFiles:
    """The files of one run."""

    def __init__(self, dag: Dag, run: DagRun, progress: Progress) -> None:
        self._dag: Final = dag
        self._run: Final = run
        self._progress: Final = progress
        self._status_at: float | None = None
        self._status_of = -1.0
        """Of which change of the workflow the status file is."""
        self._dot_at: float | None = None
        self._dot_of = -1.0

    def refresh(self, now: float, *, is_held: bool) -> float | None:
        """
        Write what is due; in how many seconds something else will be, or None: not before something happens.

        Raises OSError.
        """
        waits = (self._refresh_status(now, is_held=is_held), self._refresh_dot(now))
        return min((wait for wait in waits if wait is not None), default=None)

    def write_status(self, now: float, *, is_held: bool = False) -> None:
        """Write the NODE_STATUS_FILE, if the DAG wants one.  Raises OSError."""
        wanted = self._dag.node_status_file
        if wanted is None:
            return
        progress = self._progress
        is_over = progress.exit_code is not None
        counts, jobs = progress.counts, progress.job_counts
        status, note = NodeStatus.SUBMITTED, "held" if is_held else ""
        if is_over:
            note = _NOTES.get(progress.status, "failed")
            status = NodeStatus.ERROR if progress.exit_code else NodeStatus.DONE
            # What is not over now was removed with the workflow, whether or not somebody has seen its end.
            left = counts.pre + counts.queued + counts.post
            counts = counts._replace(failed=counts.failed + left, pre=0, queued=0, post=0)
            jobs = jobs._replace(held=0, idle=0, running=0)
        lines = node_status.ads(
            now, self._run.dag_files, status, note, counts, jobs, self._node_lines(is_over=is_over),
            0.0 if is_over else now + wanted.seconds,
        )  # fmt: skip
        replace(self._run.directory / wanted.path, "".join(f"{line}\n" for line in lines))

    def draw(self, now: float) -> None:
        """Write the picture of DOT, if the DAG wants one.  Raises OSError."""
        wanted = self._dag.dot
        if wanted is None:
            return
        path = self._run.directory / wanted.path
        included: tuple[str, str] | None = None
        if wanted.header:
            included = wanted.header, (self._run.directory / wanted.header).read_text(errors="replace")
        nodes = self._dag.nodes
        children = self._dag.edges.children()
        lines = dot.graph(
            now,
            ((node.name, self._progress.status_of(index)) for index, node in enumerate(nodes)),
            (
                (node.name, nodes[child].name)
                for index, node in enumerate(nodes)
                for child in children.nodes_of(index)
            ),
            included,
        )
        replace(path if wanted.overwrite else dot.unused(path), "".join(f"{line}\n" for line in lines))

    def write_rescue(self, number: int, at: float) -> Path:
        """Write a rescue file; its path.  Raises OSError."""
        path = rescue.rescue_name(self._run.primary, number, multi=self._run.is_multi)
        self._write_done(
            path, rescue.rescue_heading(self._run.dag_files), at, keep_retries=self._run.keep_retries
        )
        return path

    def write_save_point(self, node: int, at: float) -> Path:
        """Write the save point file of a node; one that is there becomes `….old`.  Raises OSError."""
        said = self._dag.nodes[node]
        path = rescue.save_file(self._run.directory, self._run.primary, said.name, said.save_point)
        path.parent.mkdir(exist_ok=True)
        if path.exists():
            path.replace(path.with_name(f"{path.name}.old"))
        self._write_done(path, rescue.save_point_heading(said.name), at, keep_retries=True)
        return path

    def write_metrics(self, exit_code: int) -> None:
        """What the run came to.  Raises OSError."""
        progress, run = self._progress, self._run
        kinds = [node.kind is NodeKind.SUBDAG for node in self._dag.nodes]
        of_kind = {False: [0, 0, 0], True: [0, 0, 0]}
        for node in progress.counted():
            status = progress.status_of(node)
            counted = of_kind[kinds[node]]
            counted[0] += 1
            counted[1] += status is NodeStatus.ERROR
            counted[2] += status is NodeStatus.DONE
        (jobs, failed, succeeded), (dag_jobs, dags_failed, dags_succeeded) = of_kind[False], of_kind[True]
        graph = levels(self._dag)
        figures = Metrics(
            version=run.version.removeprefix("$CondorVersion: ").partition(" ")[0],
            start_time=progress.started,
            end_time=progress.changed,
            duration=progress.changed - progress.started,
            exitcode=exit_code,
            dagman_id=str(run.workflow),
            parent_dagman_id=run.parent,
            rescue_dag_number=run.rescued_from,
            jobs=jobs,
            jobs_failed=failed,
            jobs_succeeded=succeeded,
            dag_jobs=dag_jobs,
            dag_jobs_failed=dags_failed,
            dag_jobs_succeeded=dags_succeeded,
            total_jobs=jobs + dag_jobs,
            total_jobs_run=failed + succeeded + dags_failed + dags_succeeded,
            graph_height=graph.height,
            graph_width=graph.width,
            graph_num_edges=len(self._dag.edges.ends) // 4,
            graph_num_vertices=self._dag.edges.vertices,
            dag_status=progress.status.value,
        )
        replace(run.metrics, metrics_text(figures))

    def _refresh_status(self, now: float, *, is_held: bool) -> float | None:
        wanted, changed = self._dag.node_status_file, self._progress.changed
        if wanted is None or (changed == self._status_of and not wanted.always_update and not is_held):
            return None
        is_over = self._progress.exit_code is not None
        due = 0.0 if self._status_at is None or is_held or is_over else self._status_at + wanted.seconds
        if now < due:
            return due - now
        self.write_status(now, is_held=is_held)
        self._status_at, self._status_of = now, changed
        return float(wanted.seconds) if wanted.always_update and not is_over else None

    def _refresh_dot(self, now: float) -> float | None:
        wanted, changed = self._dag.dot, self._progress.changed
        if wanted is None or changed == self._dot_of or (self._dot_at is not None and not wanted.update):
            return None
        due = (
            0.0
            if self._dot_at is None or self._progress.exit_code is not None
            else self._dot_at + DOT_SECONDS
        )
        if now < due:
            return due - now
        self.draw(now)
        self._dot_at, self._dot_of = now, changed
        return None

    def _node_lines(self, *, is_over: bool) -> Iterator[NodeLine]:
        progress = self._progress
        for index in progress.counted():
            status = progress.status_of(index)
            jobs = progress.jobs.get(index)
            retries = progress.attempts.get(index, 0)
            name = progress.plan.names[index]
            if is_over and status in _AT_WORK:
                yield NodeLine(name, NodeStatus.ERROR, f"Was STATUS_{status.name}", retries)
                continue
            match status:
                case NodeStatus.SUBMITTED:
                    details = "idle" if jobs is None or jobs.idle else "not_idle"
                case NodeStatus.ERROR:
                    details = progress.failures.get(index, "")
                case NodeStatus.FUTILE:
                    details = "Had an ancestor node fail"
                case NodeStatus.DONE if index in progress.done_before:
                    details = "User defined as DONE"
                case _:
                    details = ""
            yield NodeLine(
                name, status, details, retries, jobs.left if jobs else 0, len(jobs.held) if jobs else 0
            )

    def _write_done(self, path: Path, heading: list[str], at: float, *, keep_retries: bool) -> None:
        progress, plan = self._progress, self._progress.plan
        edges = self._dag.edges.children()
        nodes: list[RescueNode] = []
        for index in progress.counted():
            status = progress.status_of(index)
            retries = plan.retries.get(index)
            failed = status is NodeStatus.ERROR
            weak = edges.weakness_of(index) if failed else b""
            nodes.append(
                RescueNode(
                    plan.names[index],
                    done=status is NodeStatus.DONE and index != plan.final,
                    failed=failed,
                    spared=bool(weak) and all(weak),
                    retries_made=progress.retries_made(index),
                    retries=retries.most if retries else 0,
                    unless_exit=retries.unless if retries else None,
                )
            )
        lines = rescue.rescue(heading, at, nodes, total=len(nodes), keep_retries=keep_retries)
        replace(path, "".join(f"{line}\n" for line in lines))
