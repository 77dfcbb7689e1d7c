"""`kettle workflow dag`: an instance of WfFormat as a DAG file."""

import argparse

from kettle.prominence.faults import DocumentRefused
from kettle.prominence.wfformat import dag_of, read_instance
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.workflow.checking import refused
from kettle_services.cli.workflow.documents import text_of


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Write it to the standard output."""
    try:
        screen.write(dag_of(read_instance(text_of(arguments.file)), replay=arguments.replay))
    except DocumentRefused as refusal:
        return refused(refusal.faults, screen)
    return 0
