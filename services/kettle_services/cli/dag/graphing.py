"""`kettle dag graph`: a DAG as a picture."""

import argparse
import shutil
import subprocess
from pathlib import Path

from kettle.dag.building.options import Options
from kettle.dag.building.parser import parse
from kettle.dag.disk import reader
from kettle.dag.drawing import dot, drawing
from kettle.dag.faults import DagError
from kettle_services.cli.errors import CommandError
from kettle_services.cli.output.screen import Screen


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Draw it."""
    try:
        dag = parse(
            arguments.files,
            reader(Path.cwd()),
            Options(use_dag_directory=arguments.use_dag_dir),
            partial=arguments.partial,
        )
    except DagError as error:
        raise CommandError(str(error)) from error
    picture = drawing(dag, fold=arguments.fold)
    if arguments.format == "json":
        screen.json(picture)
        return 0
    text = "".join(f"{line}\n" for line in dot(picture, Path(arguments.files[0]).name))
    if arguments.format == "dot":
        screen.write(text)
        return 0
    screen.write(_svg(text))
    return 0


def _svg(text: str) -> str:
    program = shutil.which("dot")
    if program is None:
        raise CommandError(
            "an svg is drawn by the program dot of Graphviz, which is not installed; --format dot needs no program"
        )
    done = subprocess.run([program, "-Tsvg"], input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CommandError(f"{program} ended with status {done.returncode}: {done.stderr.strip()}")
    return done.stdout
