"""
PRE, POST and HOLD scripts, as jobs of the local universe: each has an identity, so that none runs twice.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.client.errors import ClientError
from kettle.client.jobs.submission import prepare
from kettle.dag.files.progress import Progress
from kettle.dag.structure import Script
from kettle.jobs.quoting import join_v2
from kettle_services.condor.dagman.macros import NodeSoFar, filled, words_of
from kettle_services.condor.dagman.node_jobs import METHOD, NodesInCommon, attributes_of, directory_of
from kettle_wire.codes import NodePart
from kettle_wire.events.workflow import NodeStep

if TYPE_CHECKING:
    from kettle.submit import Submission

_OF_THE_JOB: Final = ("_CONDOR_", "KETTLE_JOB_", "BATCH_SYSTEM")
"""Variables that belong to the DAG job alone."""
_PLACES: Final = frozenset({"TMPDIR", "TMP", "TEMP"})


def script_of(source: NodesInCommon, step: NodeStep) -> Script:
    """The script that a step is to run."""
    node = source.dag.nodes[step.node]
    found = {NodePart.PRE: node.pre, NodePart.POST: node.post, NodePart.HOLD: node.hold}[NodePart(step.part)]
    if found is None:
        raise ClientError(f"node {node.name} has no {NodePart(step.part).name} script")
    return found


def script_submission(
    source: NodesInCommon,
    step: NodeStep,
    progress: Progress,
    so_far: NodeSoFar,
    environ: Mapping[str, str] = os.environ,
) -> "Submission":
    """
    The job that runs a script.

    Raises:
        SubmitError, ClientError: there is no such program, or it cannot be described.
    """
    node, script = source.dag.nodes[step.node], script_of(source, step)
    directory = directory_of(node, source.directory)
    words = words_of(script.command)
    if not words:
        raise ClientError(f"the {NodePart(step.part).name} script of node {node.name} is empty")
    arguments = filled(words[1:], step, node.name, node.retries, source.workflow, progress, so_far)
    taken = {
        name: value
        for name, value in environ.items()
        if not name.startswith(_OF_THE_JOB) and name not in _PLACES and value.isprintable()
    }
    lines = [
        "universe = local",
        f"executable = {_literal(_program(words[0], directory))}",
        f"arguments = {_quoted(arguments)}",
        f"environment = {_quoted([f'{name}={value}' for name, value in taken.items()])}",
        f"initialdir = {_literal(str(directory))}",
        "should_transfer_files = NO",
        *_output(script),
        "queue",
    ]
    prepared = prepare(
        "\n".join(lines) + "\n",
        cwd=directory,
        environ=environ,
        source=f"{NodePart(step.part).name} script of node {node.name}",
        submit_method=METHOD,
    )
    return msgspec.structs.replace(prepared, ad={**prepared.ad, **attributes_of(source, step)})


def _program(word: str, directory: Path) -> str:
    """The file of a script: in the node's directory, or a program that the shell would find."""
    here = directory / word
    if here.is_file():
        return os.path.abspath(here)  # noqa: PTH100 - links stay as they are
    return shutil.which(word) or str(here)


def _output(script: Script) -> list[str]:
    if not script.debug_file:
        return []
    streams = script.debug_streams.upper()
    path = _literal(script.debug_file)
    found = [f"output = {path}"] if streams in {"STDOUT", "ALL"} else []
    return found + ([f"error = {path}"] if streams in {"STDERR", "ALL"} else [])


def _quoted(words: list[str]) -> str:
    return '"{}"'.format(_literal(join_v2(words).replace('"', '""')))


def _literal(text: str) -> str:
    """A text in which nothing is a macro."""
    return text.replace("$(", "$(DOLLAR)(")
