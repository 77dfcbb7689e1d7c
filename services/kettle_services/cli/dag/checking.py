"""`kettle dag check`: everything that is wrong with DAG files, and what they amount to."""

import argparse
import os
import posixpath
from collections.abc import Iterator, Sequence
from pathlib import Path

from kettle.dag.building.options import Options
from kettle.dag.building.parser import check
from kettle.dag.disk import reader
from kettle.dag.faults import Fault
from kettle.dag.outside import Outside, outside_faults
from kettle.dag.structure import Dag, NodeKind
from kettle.dag.summary import Summary, cycle_faults, summary
from kettle_services.cli.output.screen import Screen

_MOST_NAMES = 12
"""How many nodes of the longest chain people are shown."""


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Check, and show the result."""
    options = Options(use_dag_directory=arguments.use_dag_dir)
    dag, found = check(arguments.files, reader(Path.cwd()), options, partial=arguments.partial)
    wrong, strange = _outside(dag, arguments, options)
    faults = [*found, *cycle_faults(dag), *wrong]
    warnings = [*dag.warnings, *strange]
    shape = summary(dag)
    if screen.as_json:
        screen.json({"faults": faults, "warnings": warnings, "dag": shape})
    else:
        _show(shape, faults, warnings, screen)
    return 1 if faults else 0


def _outside(dag: Dag, arguments: argparse.Namespace, options: Options) -> tuple[list[Fault], list[Fault]]:
    """Faults and warnings about what the files name; without --deep whether submit files are there."""
    if not arguments.deep:
        return [], list(_missing_files(dag))
    found = list(
        outside_faults(
            dag,
            Path.cwd(),
            options,
            Outside(),
            environ=os.environ,
            above=tuple(Path(path).resolve() for path in arguments.files),
        )
    )
    return [fault for fault, is_missing in found if not is_missing], [
        fault for fault, missing in found if missing
    ]


def _missing_files(dag: Dag) -> Iterator[Fault]:
    """Submit files that are not there; a PRE script may still write them, so it is no fault."""
    seen: set[str] = set()
    for node in dag.nodes:
        if node.description is not None or node.is_noop or node.is_done or node.kind is NodeKind.SUBDAG:
            continue
        path = posixpath.join(node.directory, node.submit)
        if path not in seen:
            seen.add(path)
            if not Path(path).exists():
                sentence = f"the submit file {path} of node {node.name} is not there"
                if node.pre is not None:
                    sentence += "; its PRE script may write it"
                yield Fault(dag.files[node.file], node.line, sentence)


def _show(shape: Summary, faults: Sequence[Fault], warnings: Sequence[Fault], screen: Screen) -> None:
    for fault in faults:
        screen.trouble(f"{fault}")
    for warning in warnings:
        screen.note(f"warning: {warning}")
    kinds = ", ".join(f"{count} {kind}" for kind, count in shape.kinds.items() if count)
    chain = list(shape.critical_path)
    if len(chain) > _MOST_NAMES:
        chain = [*chain[: _MOST_NAMES // 2], "...", *chain[-_MOST_NAMES // 2 :]]
    rows = [
        ("files", ", ".join(dict.fromkeys(shape.files))),
        ("nodes", f"{shape.nodes}" + (f" ({kinds})" if kinds else "")),
        ("done before", f"{shape.done}"),
        ("edges", f"{shape.edges}" + (f" ({shape.weak_edges} weak)" if shape.weak_edges else "")),
        ("splices", f"{shape.splices}"),
        ("height", f"{shape.height}"),
        ("width", f"{shape.width}"),
        ("longest chain", " -> ".join(chain) if shape.height else ""),  # a cycle has none
        ("faults", f"{len(faults)}"),
        ("warnings", f"{len(warnings)}"),
    ]
    screen.table(
        ("DAG", ""), [row for row in rows if row[1] not in {"", "0"} or row[0] in {"nodes", "faults"}]
    )
