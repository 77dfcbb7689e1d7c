"""Looks at what DAG files name: submit descriptions, scripts, DAGs within."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from kettle.dag.building.options import Options
from kettle.dag.building.parser import check
from kettle.dag.disk import reader
from kettle.dag.faults import Fault
from kettle.dag.structure import Dag, Node, NodeKind
from kettle.submit import Site, SubmitError, expand_clusters, parse
from kettle.submit.errors import NoJobError

_MOST_NESTED: Final = 100


class Outside(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked at."""

    descriptions: bool = True
    scripts: bool = True
    sub_dags: bool = True


def outside_faults(
    dag: Dag,
    directory: Path,
    options: Options,
    outside: Outside,
    *,
    environ: Mapping[str, str],
    above: tuple[Path, ...] = (),
) -> Iterator[tuple[Fault, bool]]:
    """
    What is wrong outside of the DAG files, and of each whether something is only not there: a PRE script may make it.

    Of nodes that share a submit description the first is looked at.  `above`: the DAG files around this one.
    """
    seen: set[tuple[str, str | None, str]] = set()
    for node in dag.nodes:
        for sentence, is_missing in _of_node(node, directory, options, outside, seen, environ, above):
            yield Fault(dag.files[node.file], node.line, sentence), is_missing


def _of_node(
    node: Node,
    directory: Path,
    options: Options,
    outside: Outside,
    seen: set[tuple[str, str | None, str]],
    environ: Mapping[str, str],
    above: tuple[Path, ...],
) -> Iterator[tuple[str, bool]]:
    place = directory / node.directory
    if outside.scripts:
        yield from ((sentence, False) for sentence in _scripts(node, place))
    key = (node.submit, node.description, node.directory)
    if key in seen or node.is_noop or node.is_done:
        return
    seen.add(key)
    if node.kind is NodeKind.SUBDAG:
        if outside.sub_dags:
            yield from _sub_dag(node, place, options, outside, environ, above)
    elif outside.descriptions:
        yield from _description(node, place, environ)


def _scripts(node: Node, place: Path) -> Iterator[str]:
    for when, script in (("PRE", node.pre), ("POST", node.post), ("HOLD", node.hold)):
        if script is None:
            continue
        program = place / script.command.split(maxsplit=1)[0]
        if not program.exists():
            yield f"the {when} script of node {node.name} is not there: {program}"
        elif not os.access(program, os.X_OK):
            yield f"the {when} script of node {node.name} cannot be executed: {program}"


def _description(node: Node, place: Path, environ: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
    text, source = node.description, f"description of node {node.name}"
    if text is None:
        source = node.submit
        try:
            text = (place / node.submit).read_text(encoding="utf-8", errors="surrogateescape")
        except FileNotFoundError:
            yield f"the submit file {node.submit} of node {node.name} is not there", True
            return
        except OSError as error:
            yield f"the submit file {node.submit} of node {node.name} cannot be read: {error.strerror}", False
            return
    given = {
        "JOB": node.name,
        "RETRY": "0",
        "FAILED_COUNT": "0",
        "DAG_STATUS": "0",
        "DAG_PARENT_NAMES": "",
        "DAGManJobId": "1",
        **{each.name: each.value for each in node.variables},
    }
    if "queue" not in text.lower():
        text += "\nqueue\n"
    try:
        read = parse(text, source=source, cwd=place, environ=environ, given=given, tolerant=True)
        expand_clusters(read, Site.here())
    except NoJobError:
        return
    except SubmitError as error:
        yield f"the submit description of node {node.name} is refused: {error}", False


def _sub_dag(
    node: Node,
    place: Path,
    options: Options,
    outside: Outside,
    environ: Mapping[str, str],
    above: tuple[Path, ...],
) -> Iterator[tuple[str, bool]]:
    path = (place / node.submit).resolve()
    if path in above or len(above) > _MOST_NESTED:
        yield f"the DAG of node {node.name} is within itself: {node.submit}", False
        return
    if not path.exists():
        yield f"the DAG file {node.submit} of node {node.name} is not there", True
        return
    dag, faults = check([node.submit], reader(place), options)
    for fault in faults:
        yield f"within node {node.name}: {fault}", False
    for fault, is_missing in outside_faults(
        dag, place, options, outside, environ=environ, above=(*above, path)
    ):
        yield f"within node {node.name}: {fault}", is_missing
