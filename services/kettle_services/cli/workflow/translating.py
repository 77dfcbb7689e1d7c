"""`kettle workflow dag`: an instance of WfFormat as a DAG file."""

import argparse
from typing import Final

from kettle.prominence.faults import DocumentRefused, Fault
from kettle.prominence.job_documents import parsed
from kettle.prominence.wfformat import dag_of, is_instance, read_instance
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.workflow.checking import refused
from kettle_services.cli.workflow.documents import text_of

_NO_INSTANCE: Final = (
    "this is no instance of WfFormat, which has a schemaVersion; documents of PROMINENCE are not translated: "
    "send them to a gateway that has its interface"
)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Write it to the standard output; with --json it is a field of an object."""
    try:
        text = text_of(arguments.file)
        if not is_instance(parsed(text)):
            return refused([Fault("", _NO_INSTANCE)], screen)
        dag = dag_of(read_instance(text), replay=arguments.replay)
    except DocumentRefused as refusal:
        return refused(refusal.faults, screen)
    if screen.as_json:
        screen.json({"faults": [], "dag": dag})
    else:
        screen.write(dag)
    return 0
