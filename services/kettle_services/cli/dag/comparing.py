"""`kettle dag diff`: two runs of a DAG, node by node."""

import argparse

import msgspec

from kettle.client import Client
from kettle.dag.node_runs import NodeRun, differences, node_runs
from kettle.terminal.quantities import counted
from kettle_services.cli.options import with_pool
from kettle_services.cli.output.screen import Screen
from kettle_wire.codes import NodeState


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Compare, and show what differs."""
    first, second = arguments.workflows

    async def both(pool: Client) -> tuple[dict[str, NodeRun], dict[str, NodeRun]]:
        return node_runs(await pool.workflows.history(first)), node_runs(await pool.workflows.history(second))

    before, after = with_pool(arguments, both)
    found = list(differences(before, after))
    if screen.as_json:
        screen.json(
            [
                {"node": each.node, str(first): _plain(each.before), str(second): _plain(each.after)}
                for each in found
            ]
        )
        return 0
    if not found:
        screen.say(f"All {counted(len(before), 'node')} are the same in both runs.")
        return 0
    rows = [(each.node, _shown(each.before), _shown(each.after)) for each in found]
    screen.table(("NODE", f"IN {first}", f"IN {second}"), rows)
    return 0


def _plain(run: NodeRun | None) -> object:
    if run is None:
        return None
    return {**msgspec.structs.asdict(run), "state": run.state.name.lower()}


def _shown(run: NodeRun | None) -> str:
    if run is None:
        return "-"
    value = f" ({run.value})" if run.state is NodeState.FAILED else ""
    took = "" if run.seconds is None else f" {run.seconds:.1f} s"
    return f"{run.state.name.lower()}{value}{took}"
