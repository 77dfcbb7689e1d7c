"""The description of the job that runs a DAG, for `Submit.from_dag`; loaded when somebody asks for it."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from kettle.bindings.errors import HTCondorValueError
from kettle.bindings.param import param
from kettle.dag.submission.command_line import OptionError, by_name
from kettle.dag.submission.options import OPTIONS, SubmitDagOptions
from kettle.dag.submission.preparing import PreparationError, Site, prepare
from kettle_wire.ads.daemon import CONDOR_VERSION


def described(filename: str, options: Mapping[str, int | bool | str]) -> str:
    """The text of `DAG.condor.sub`, which is written, too.  Raises OSError and HTCondorValueError."""
    if not Path(filename).exists():
        raise FileNotFoundError(2, os.strerror(2), filename)
    said = SubmitDagOptions(dag_files=[filename])
    site = Site(
        directory=Path.cwd(),
        environ=os.environ,
        knob=param.knobs.get,
        version=CONDOR_VERSION,
        dagman=shutil.which("condor_dagman") or "",
    )
    try:
        for name, value in options.items():
            by_name(name, value, said)
        names = prepare(said, site).names
    except (OptionError, PreparationError) as error:
        raise HTCondorValueError(str(error)) from error
    return Path(names.submit_file).read_text(encoding="utf-8", errors="surrogateescape")


def option_names() -> list[str]:
    """What `described` understands, in lower case: names of options are without regard to case."""
    return sorted(OPTIONS)
