"""Each command as a value: what one line says, before anybody knows whether the nodes that it names exist."""

import msgspec

from kettle.dag.structure import (
    AbortRule,
    Dot,
    NodeKind,
    NodeStatusFile,
    Script,
    ScriptKind,
    Tolerance,
    Variable,
)


class SubmitDescription(msgspec.Struct, frozen=True, gc=False):
    """SUBMIT-DESCRIPTION: a description with a name, for any number of nodes."""

    name: str
    text: str


class NodeCommand(msgspec.Struct, frozen=True, gc=False):
    """JOB, SUBDAG, FINAL, PROVISIONER or SERVICE."""

    kind: NodeKind
    name: str
    submit: str
    description: str | None = None
    directory: str = ""
    is_noop: bool = False
    is_done: bool = False


class Splice(msgspec.Struct, frozen=True, gc=False):
    """SPLICE: another file whose nodes become part of this graph."""

    name: str
    path: str
    directory: str = ""


class Dependency(msgspec.Struct, frozen=True, gc=False):
    """PARENT ... CHILD ..."""

    parents: tuple[str, ...]
    children: tuple[str, ...]
    is_weak: bool = False


class ScriptCommand(msgspec.Struct, frozen=True, gc=False):
    """SCRIPT."""

    node: str
    when: ScriptKind
    script: Script


class Retry(msgspec.Struct, frozen=True, gc=False):
    """RETRY."""

    node: str
    retries: int
    unless_exit: int | None = None


class Abort(msgspec.Struct, frozen=True, gc=False):
    """ABORT-DAG-ON."""

    node: str
    rule: AbortRule


class Vars(msgspec.Struct, frozen=True, gc=False):
    """VARS; each variable's placement is its own only if the line says one."""

    node: str
    variables: tuple[Variable, ...]
    has_placement: bool = False


class Priority(msgspec.Struct, frozen=True, gc=False):
    """PRIORITY."""

    node: str
    priority: int


class PreSkip(msgspec.Struct, frozen=True, gc=False):
    """PRE_SKIP."""

    node: str
    exit_code: int


class ToleranceCommand(msgspec.Struct, frozen=True, gc=False):
    """TOLERANCE."""

    node: str
    tolerance: Tolerance


class Done(msgspec.Struct, frozen=True, gc=False):
    """DONE."""

    node: str


class SavePoint(msgspec.Struct, frozen=True, gc=False):
    """SAVE_POINT_FILE; without a path it is named after the node and the DAG file."""

    node: str
    path: str = ""


class Category(msgspec.Struct, frozen=True, gc=False):
    """CATEGORY."""

    node: str
    category: str


class MaxJobs(msgspec.Struct, frozen=True, gc=False):
    """MAXJOBS."""

    category: str
    limit: int


class Include(msgspec.Struct, frozen=True, gc=False):
    """INCLUDE."""

    path: str


class JobstateLog(msgspec.Struct, frozen=True, gc=False):
    """JOBSTATE_LOG."""

    path: str


class Config(msgspec.Struct, frozen=True, gc=False):
    """CONFIG."""

    path: str


class Environment(msgspec.Struct, frozen=True, gc=False):
    """ENV: assignments, or the names of variables that are inherited."""

    assignments: str = ""
    inherited: tuple[str, ...] = ()


class JobAttribute(msgspec.Struct, frozen=True, gc=False):
    """SET_JOB_ATTR."""

    assignment: str


class Reject(msgspec.Struct, frozen=True, gc=False):
    """REJECT."""


class Connect(msgspec.Struct, frozen=True, gc=False):
    """CONNECT."""

    parent: str
    child: str


class Pin(msgspec.Struct, frozen=True, gc=False):
    """PIN_IN or PIN_OUT."""

    node: str
    number: int
    is_in: bool


Order = Dependency | Connect | Pin
"""Who waits for whom."""

Modifier = (
    Abort | Category | Done | PreSkip | Priority | Retry | SavePoint | ScriptCommand | ToleranceCommand | Vars
)
"""What is said of a node."""

Setting = MaxJobs | Dot | NodeStatusFile | JobstateLog | Config | Environment | JobAttribute | Reject
"""What is said of the DAG as a whole."""

Command = NodeCommand | SubmitDescription | Splice | Include | Order | Modifier | Setting
