"""
condor_chirp outside of a job, where it cannot do anything; in a job that finds this one first, what the job's own does.
"""

import os
from pathlib import Path
from typing import Final

from kettle.execution.job_environment import condor_chirp
from kettle_services.condor.errors import ToolError

HELP: Final = {"condor_chirp": condor_chirp.HELP}


def run(_name: str, words: list[str]) -> int:
    """Do it in a job; elsewhere say where it can be done."""
    if not _in_job():
        raise ToolError(
            "condor_chirp: this is no job: it is for programs of jobs that run, which find it on their PATH and in the "
            "directory $_CONDOR_BIN.  From here, condor_q ID -af NAME reads an attribute of a job and condor_qedit ID "
            "NAME VALUE sets one; condor_tail looks at its files"
        )
    return condor_chirp.main(words)


def _in_job() -> bool:
    scratch = os.environ.get("_CONDOR_SCRATCH_DIR")
    return bool(os.environ.get("_CONDOR_CHIRP_CONFIG")) or (
        scratch is not None and (Path(scratch) / ".chirp.config").exists()
    )
