"""`kettle dag halt` and `kettle dag resume`."""

import argparse

from kettle_services.cli.options import with_pool
from kettle_services.cli.output.screen import Screen


def halt(arguments: argparse.Namespace, screen: Screen) -> int:
    """Have a workflow begin nothing new."""
    workflow: int = arguments.workflow
    with_pool(arguments, lambda pool: pool.workflows.halt(workflow, arguments.reason))
    screen.say(f"Workflow {workflow} is halted: what runs comes to its end, and nothing new begins.")
    return 0


def resume(arguments: argparse.Namespace, screen: Screen) -> int:
    """Let it go on."""
    workflow: int = arguments.workflow
    with_pool(arguments, lambda pool: pool.workflows.resume(workflow))
    screen.say(f"Workflow {workflow} goes on.")
    return 0
