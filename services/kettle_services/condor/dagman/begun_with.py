"""
Whether the files of a DAG still say what its workflow has begun with, when the process of its DAG job has come back.

DAGMan reads the files again and goes on with what they say then.  So do we with all that is read to run a node: submit descriptions,
macros, scripts.  The graph and its rules are recorded: with others the process would run one node in the name of another.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, NoReturn

from kettle.client import Client
from kettle.dag.plan_changes import PlanChanges, plan_changes
from kettle.terminal.quantities import counted
from kettle_wire.commands.queue import Select
from kettle_wire.events.workflow import WorkflowStarted
from kettle_wire.jobs import JobId
from kettle_wire.workflows import Plan, unpacked

_MOST_NAMES: Final = 5
"""Nodes that are named in a reason."""


def why_not(began: WorkflowStarted, digest: str, plan: Plan) -> str:
    """
    Why the workflow cannot go on with what the files say now, as the reason of a hold; empty: it can.  Raises ValueError for a plan
    that cannot be read.
    """
    if digest == began.digest:
        return ""
    changes = plan_changes(unpacked(began.plan), plan)
    if not changes:
        return ""
    return f"{_files(began)} changed since workflow {began.workflow} began: {_what(changes, plan)}; {_then(began)}"


def unreadable(began: WorkflowStarted, error: Exception) -> str:
    """The reason of a hold if the files cannot even be read now."""
    return f"the DAG of workflow {began.workflow} cannot be read any more: {error}; {_then(began)}"


async def held(client: Client, workflow: int, reason: str) -> NoReturn:
    """Hold the DAG job, and wait for the end of this process, which is part of it."""
    await client.hold(Select(jobs=[JobId(workflow, 0)]), reason)
    await asyncio.get_running_loop().create_future()
    raise AssertionError("nobody sets it")


def _files(began: WorkflowStarted) -> str:
    files = _listed(began.files, len(began.files))
    return f"{files} {'has' if len(began.files) == 1 else 'have'}"


def _what(changes: PlanChanges, plan: Plan) -> str:
    if changes.nodes:
        one = len(changes.nodes) == 1
        return f"{counted(len(changes.nodes), 'node')} {'differs' if one else 'differ'} ({_listed(changes.nodes, _MOST_NAMES)})"
    if changes.order:
        return f"its {counted(len(plan.names), 'node')} stand in another order"
    return "MAXJOBS of a category differs (kettle dag and PATCH /v2/workflows change limits of a workflow that runs)"


def _then(began: WorkflowStarted) -> str:
    number = began.workflow
    return (
        f"put back what it was and release the job (condor_release {number}), or remove the job (condor_rm {number}) and run what is left "
        f"of the DAG as it is now (kettle dag rerun {number})"
    )


def _listed(names: Sequence[str], most: int) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
