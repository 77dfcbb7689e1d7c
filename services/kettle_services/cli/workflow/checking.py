"""`kettle workflow check`: everything that is wrong with a document, and what the workflow would be."""

import argparse
from collections.abc import Sequence
from typing import Final

from kettle.prominence import wfformat
from kettle.prominence.carried_out import not_carried_out
from kettle.prominence.dry_run import dry_run
from kettle.prominence.faults import DocumentRefused, Fault
from kettle.prominence.job_documents import parsed, read_job
from kettle.prominence.workflow_documents import is_workflow, read_workflow
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.workflow.documents import text_of
from kettle_wire.prominence.dry_run import DryRun

_MOST_NAMES: Final = 12
"""How many jobs of the longest way people are shown."""


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Check, and show the result."""
    text = text_of(arguments.file)
    try:
        shape, warnings = _looked_at(text)
    except DocumentRefused as refusal:
        return refused(refusal.faults, screen)
    if screen.as_json:
        screen.json({"faults": [], "warnings": warnings, "workflow": shape})
        return 0
    for warning in warnings:
        screen.note(f"warning: {_line(warning)}")
    if shape is None:
        screen.write("a job, with nothing wrong\n")
    else:
        screen.table(("WORKFLOW", ""), _rows(shape))
    return 0


def _looked_at(text: bytes) -> tuple[DryRun | None, Sequence[Fault]]:
    """What a document would be, and what is strange about it; raises DocumentRefused."""
    document = parsed(text)
    if wfformat.is_instance(document):
        return wfformat.dry_run(wfformat.read_instance(text)), []
    if is_workflow(document):
        found = dry_run(read_workflow(text))
        return found, found.warnings
    return None, list(not_carried_out(read_job(text)))


def refused(faults: Sequence[Fault], screen: Screen) -> int:
    """Show what is wrong with a document; the exit status."""
    if screen.as_json:
        screen.json({"faults": faults, "warnings": [], "workflow": None})
    else:
        for fault in faults:
            screen.trouble(_line(fault))
    return 1


def _line(fault: Fault) -> str:
    return f"{fault.pointer}: {fault.sentence}" if fault.pointer else fault.sentence


def _rows(shape: DryRun) -> list[tuple[str, str]]:
    path = list(shape.critical_path)
    if len(path) > _MOST_NAMES:
        path = [*path[: _MOST_NAMES // 2], "...", *path[-_MOST_NAMES // 2 :]]
    return [
        ("name", shape.name),
        ("jobs", f"{shape.jobs}"),
        ("submitted", f"{shape.nodes}"),
        ("height", f"{shape.height}"),
        ("width", f"{shape.width}"),
        ("longest way", " -> ".join(path)),
        ("takes at most" if shape.is_limit else "took", f"{shape.seconds:.0f} s"),
    ]
