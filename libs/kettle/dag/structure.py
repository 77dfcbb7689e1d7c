"""
What a DAG says, as one immutable value that msgspec can encode.

A node is known by its index in `Dag.nodes`; `Dag.edges` speaks of indices only.  Names are unique.  Paths are as they are
written, relative to the directory of the submission; those of a spliced file have the directory of its SPLICE in front.
"""

import enum
from typing import Final

import msgspec

from kettle.dag.edges import Edges
from kettle.dag.faults import Fault


class NodeKind(enum.StrEnum):
    """What a node is, by the command that made it."""

    JOB = "job"
    SUBDAG = "subdag"
    FINAL = "final"
    PROVISIONER = "provisioner"
    SERVICE = "service"


class ScriptKind(enum.StrEnum):
    """When a script runs: before the job, after it, or whenever a job of the node is held."""

    PRE = "PRE"
    POST = "POST"
    HOLD = "HOLD"


class Script(msgspec.Struct, frozen=True, gc=False):
    """A PRE, POST or HOLD script."""

    command: str
    """The executable and its arguments, literally as the line has them; macros are still in it."""
    defer_status: int | None = None
    """The exit code that says: run me again after `defer_seconds`."""
    defer_seconds: int = 0
    debug_file: str = ""
    """Where the output of the script is appended."""
    debug_streams: str = ""
    """STDOUT, STDERR or ALL; empty without a `debug_file`."""


class AbortRule(msgspec.Struct, frozen=True, gc=False):
    """ABORT-DAG-ON: the value of a node that ends the whole DAG."""

    value: int
    exit_code: int | None = None
    """What the DAG ends with instead of the node's value; 0 makes it a success."""


class Tolerance(msgspec.Struct, frozen=True, gc=False):
    """How many jobs of a node may fail before the node does."""

    amount: int
    is_percent: bool = False
    fail_fast: bool | None = None
    """True: the other jobs are removed at once; False: they are waited for; None: as it is configured."""


class Variable(msgspec.Struct, frozen=True, gc=False):
    """One `name="value"` of VARS; a leading `+` of the name has become `My.`."""

    name: str
    value: str
    is_appended: bool = False
    """Set after the submit description was read, and not before."""


class Node(msgspec.Struct, frozen=True, gc=False):
    """One node of a DAG, with all that is said of it."""

    name: str
    kind: NodeKind
    submit: str
    """The submit file, or the name of a SUBMIT-DESCRIPTION, or the DAG file of a sub-DAG; empty for an own description."""
    description: str | None = None
    """The text of the submit description that stands in the DAG file, an own or a named one."""
    directory: str = ""
    """Where its files are looked for and its scripts run; empty: the directory of the DAG."""
    is_noop: bool = False
    """Nothing is submitted; it succeeds at once, and its scripts run."""
    is_done: bool = False
    """It has succeeded before this run of the DAG."""
    pre: Script | None = None
    post: Script | None = None
    hold: Script | None = None
    retries: int = 0
    unless_exit: int | None = None
    """The value of the node after which it is not tried again."""
    abort: AbortRule | None = None
    tolerance: Tolerance | None = None
    pre_skip: int | None = None
    """The exit code of the PRE script that makes the node succeed without its job and its POST script."""
    priority: int = 0
    category: str | None = None
    variables: tuple[Variable, ...] = ()
    save_point: str | None = None
    """The file into which the progress is written when the node first starts."""
    file: int = 0
    """The index in `Dag.files` of the file that has the node."""
    line: int = 0
    """The line that made it, counted from 1."""

    @property
    def is_ordinary(self) -> bool:
        """Whether it belongs to the graph: a JOB or a SUBDAG."""
        return self.kind in _ORDINARY


_ORDINARY: Final = frozenset({NodeKind.JOB, NodeKind.SUBDAG})


class SpliceUse(msgspec.Struct, frozen=True, gc=False):
    """One SPLICE; its nodes, with those of splices in it, are `first` up to, but without, `last`."""

    name: str
    """With the names of the splices around it: `outer+inner`."""
    path: str
    first: int
    last: int


class Dot(msgspec.Struct, frozen=True, gc=False):
    """DOT: a picture of the graph."""

    path: str
    update: bool = False
    """It is written again whenever a node changes its state."""
    overwrite: bool = True
    """False: each time it gets a new number."""
    header: str = ""
    """A file whose text is put into it."""


class NodeStatusFile(msgspec.Struct, frozen=True, gc=False):
    """NODE_STATUS_FILE: the states of all nodes, as ads."""

    path: str
    seconds: int = 60
    """The least time between two writings."""
    always_update: bool = False
    """It is written also when nothing has changed."""


class DagJob(msgspec.Struct, frozen=True, gc=False):
    """What the files say about the job that runs the DAG; it is read before that is submitted."""

    config: str = ""
    """CONFIG: the file with the settings for this DAG."""
    environment: tuple[str, ...] = ()
    """ENV SET: the assignments, one text for each line."""
    inherited: tuple[str, ...] = ()
    """ENV GET: names of variables that come from the submitter's environment."""
    attributes: tuple[str, ...] = ()
    """SET_JOB_ATTR: `name = expression`."""


class Dag(msgspec.Struct, frozen=True):
    """All files of one submission, read."""

    files: tuple[str, ...]
    """Every file that was read, the ones of the command line first in their order."""
    nodes: tuple[Node, ...]
    edges: Edges
    throttles: dict[str, int] = {}
    """MAXJOBS: how many nodes of a category may be submitted at a time."""
    splices: tuple[SpliceUse, ...] = ()
    dot: Dot | None = None
    node_status_file: NodeStatusFile | None = None
    jobstate_log: str | None = None
    job: DagJob = DagJob()
    warnings: tuple[Fault, ...] = ()

    @property
    def final(self) -> int | None:
        """The index of the FINAL node."""
        return self._only(NodeKind.FINAL)

    @property
    def provisioner(self) -> int | None:
        """The index of the PROVISIONER node."""
        return self._only(NodeKind.PROVISIONER)

    @property
    def services(self) -> tuple[int, ...]:
        """The indices of the SERVICE nodes."""
        return tuple(index for index, node in enumerate(self.nodes) if node.kind is NodeKind.SERVICE)

    def _only(self, kind: NodeKind) -> int | None:
        return next((index for index, node in enumerate(self.nodes) if node.kind is kind), None)
