"""The DAG that options name, as the program that runs it, and the one that submits it, read it."""

import posixpath
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kettle.dag.building.options import Options
from kettle.dag.building.parser import parse
from kettle.dag.disk import reader
from kettle.dag.files import rescue
from kettle.dag.structure import Dag
from kettle.dag.submission.options import SubmitDagOptions

MOST_RESCUES: Final = 100
"""`DAGMAN_MAX_RESCUE_NUM`, if nobody has set it."""
_TRUE: Final = frozenset({"true", "yes", "1", "t"})
_FALSE: Final = frozenset({"false", "no", "0", "f"})

Knob = Callable[[str], str | None]
"""The value of a setting of HTCondor; None if nobody has set it."""


def load(options: SubmitDagOptions, directory: Path, knob: Knob) -> Dag:
    """
    The DAG of all files, a rescue or save file included.

    Raises `DagError` for the first fault.
    """
    return parse(
        options.dag_files,
        reader(directory),
        Options(
            use_dag_directory=options.use_dag_dir,
            allow_any_names=flag(knob, "DAGMAN_ALLOW_ANY_NODE_NAME_CHARACTERS", default=False),
            append_variables=flag(knob, "DAGMAN_DEFAULT_APPEND_VARS", default=False),
            munge_names=flag(knob, "DAGMAN_MUNGE_NODE_NAMES", default=True),
        ),
        partial=partial_file(options, directory, knob),
    )


def partial_file(options: SubmitDagOptions, directory: Path, knob: Knob) -> str:
    """
    The rescue or save file from which the DAG goes on; empty if it begins.

    A save file that is named without a directory is in `save_files` beside the first DAG file.
    """
    if options.save_file:
        if "/" in options.save_file:
            return options.save_file
        return posixpath.join(posixpath.dirname(options.primary), "save_files", options.save_file)
    if options.rescue_file:
        return options.rescue_file
    number = options.do_rescue_from or newest_rescue(options, directory, knob)
    if not number:
        return ""
    return str(rescue.rescue_name(Path(options.primary), number, multi=options.is_multi))


def newest_rescue(options: SubmitDagOptions, directory: Path, knob: Knob) -> int:
    """
    The number of the rescue file that is used by itself; 0 if there is none, or another file is wanted, or
    none.
    """
    if options.rescue_file or options.save_file:
        return 0
    automatic = options.auto_rescue
    if automatic is None:
        automatic = flag(knob, "DAGMAN_AUTO_RESCUE", default=True)
    if not automatic or not (directory / options.primary).parent.is_dir():
        return 0
    text = (knob("DAGMAN_MAX_RESCUE_NUM") or "").strip()
    largest = min(int(text), rescue.LARGEST) if text.isdecimal() else MOST_RESCUES
    return rescue.newest(directory / options.primary, multi=options.is_multi, largest=largest)


def flag(knob: Knob, name: str, *, default: bool) -> bool:
    """A setting that is true or false."""
    value = (knob(name) or "").strip().lower()
    return value in _TRUE if value in _TRUE | _FALSE else default
