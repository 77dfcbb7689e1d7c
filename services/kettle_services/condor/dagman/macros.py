"""The words of the arguments of a script that stand for something; each has to be a word of its own."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kettle.dag.files.progress import Progress
from kettle_wire.codes import NodePart, NodeValue
from kettle_wire.events.workflow import NodeStep

_BLANKS: Final = re.compile(r"[ \t]+")


class NodeSoFar(msgspec.Struct):
    """What a POST script is told of its node's attempt."""

    cluster: int = 0
    jobs: int = 0
    exits: list[int] = []
    """Exit codes of its jobs as they ended; a signal below zero."""
    removed: int = 0
    pre: int = -1
    """What the PRE script returned; -1: it has none."""
    value: int = 0


def words_of(command: str) -> list[str]:
    """
    The words of a script's line, between blanks and tabs: quotes and backslashes are characters like others.
    """
    return [word for word in _BLANKS.split(command) if word]


def filled(
    words: Sequence[str],
    step: NodeStep,
    node: str,
    retries: int,
    workflow: int,
    progress: Progress,
    so_far: NodeSoFar,
) -> list[str]:
    """The words with what they stand for."""
    values = _values(step, node, retries, workflow, progress, so_far)
    return [values.get(word.upper(), word) if word.startswith("$") else word for word in words]


def _values(
    step: NodeStep, node: str, retries: int, workflow: int, progress: Progress, so_far: NodeSoFar
) -> Mapping[str, str]:
    counts = progress.counts
    values: dict[str, object] = {
        "$NODE": node,
        "$JOB": node,
        "$RETRY": step.attempt,
        "$MAX_RETRIES": retries,
        "$DAGID": workflow,
        "$DAG_STATUS": int(progress.dag_status),
        "$NODE_COUNT": counts.total,
        "$QUEUED_COUNT": counts.queued,
        "$DONE_COUNT": counts.done,
        "$FAILED_COUNT": counts.failed,
        "$FUTILE_COUNT": counts.futile,
    }
    if step.part != NodePart.PRE:
        values |= {"$CLUSTERID": so_far.cluster, "$JOBID": f"{so_far.cluster}.0"}
    if step.part == NodePart.POST:
        count = Counter(so_far.exits)
        values |= {
            "$JOB_COUNT": so_far.jobs,
            "$JOB_ABORT_COUNT": so_far.removed,
            "$SUCCESS": "True" if so_far.value == 0 else "False",
            "$RETURN": NodeValue.PRE_FAILED.value if not so_far.cluster and so_far.pre > 0 else so_far.value,
            "$EXIT_CODES": ",".join(map(str, sorted(count))),
            "$EXIT_CODE_COUNTS": ",".join(f"{code}:{count[code]}" for code in sorted(count)),
            "$EXIT_CODE_LIST": ",".join(map(str, so_far.exits)),
            "$PRE_SCRIPT_RETURN": so_far.pre,
        }
    return {name: str(value) for name, value in values.items()}
