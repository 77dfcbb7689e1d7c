"""condor_submit_dag."""

import os
import shutil
import sys
from pathlib import Path
from typing import Final

from kettle.client.connections.condor_config import CondorConfig
from kettle.dag.submission.command_line import OptionError, parsed
from kettle.dag.submission.names import FileNames
from kettle.dag.submission.options import FLAGS
from kettle_services.condor.commands import submit
from kettle_services.condor.configuration import version
from kettle_services.condor.errors import ToolError
from kettle_services.condor.launchers import BIN, default_directory

_LINE: Final = "-" * 71 + "\n"


def _help() -> str:
    shown = {
        f"  {flag.lower()} {each.takes}".rstrip(): each.help for flag, each in FLAGS.items() if each.help
    }
    options = "".join(f"{words:<31}{text}\n" for words, text in shown.items())
    return f"""\
usage: condor_submit_dag [options] DAG_FILE...

Submit a job that runs a DAG: it submits the jobs of the DAG, each when those before it have ended.
Several files are one DAG.  Options stand before the files, and may be shortened.

{options}"""


HELP: Final = {"condor_submit_dag": _help()}


def run(_name: str, words: list[str]) -> int:
    """Write the description of the job that runs the DAG, and submit it."""
    from kettle.dag.submission.preparing import PreparationError, Site, prepare

    knobs = CondorConfig(os.environ)
    try:
        options = parsed(words)
        site = Site(
            directory=Path.cwd(),
            environ=os.environ,
            knob=knobs.get,
            version=version(),
            dagman=_dagman(),
        )
        prepared = prepare(options, site)
    except OptionError as error:
        raise ToolError(f"{error}\n{HELP['condor_submit_dag']}") from error
    except PreparationError as error:
        raise ToolError(f"{error}") from error
    sys.stdout.writelines(f"{message}\n" for message in prepared.messages)
    sys.stdout.writelines(_told(prepared.names))
    if options.do_submit:
        remote = ["-name", options.remote_schedd] if options.remote_schedd else []
        status = submit.run("condor_submit", [*remote, prepared.names.submit_file])
        if status:
            raise ToolError("ERROR: condor_submit failed; aborting.")
    else:
        sys.stdout.write("-no_submit given, not submitting DAG to HTCondor. You can do this with:\n")
        sys.stdout.write(f'"condor_submit {prepared.names.submit_file}"\n')
    sys.stdout.write(_LINE)
    return 0


def _dagman() -> str:
    """The program that runs DAGs: the one in PATH, else the one beside these commands."""
    found = shutil.which("condor_dagman")
    if found:
        return str(Path(found).absolute())
    beside = default_directory() / BIN / "condor_dagman"
    return str(beside) if beside.exists() else ""


def _told(names: FileNames) -> list[str]:
    told = {
        "File for submitting this DAG to HTCondor": names.submit_file,
        "Log of DAGMan debugging messages": names.debug_log,
        "Log of HTCondor library output": names.lib_out,
        "Log of HTCondor library error messages": names.lib_err,
        "Log of the life of condor_dagman itself": names.job_log,
    }
    return [_LINE, *(f"{what:<51}: {name}\n" for what, name in told.items()), "\n"]
