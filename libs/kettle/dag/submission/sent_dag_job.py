"""
The ad of a DAG job whose files are sent to the access point, where its process runs with the account of its owner.

Who submits one with a token gets nothing but this: `difference` says what in an ad is otherwise.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Final

import msgspec

from kettle.dag.submission.command_line import OptionError, of_dagman
from kettle.dag.submission.description import ON_EXIT_REMOVE
from kettle.dag.submission.names import file_names
from kettle.dag.submission.options import SubmitDagOptions
from kettle.jobs.quoting import QuotingError, join_v2, split_v2
from kettle_wire.ads.types import Ad, Expr, Scalar
from kettle_wire.codes import Universe
from kettle_wire.workflows import WORKFLOW_FILE

PROGRAM: Final = ("-I", "-m", "kettle_services.condor.dagman")
"""Of the interpreter of the access point: condor_dagman, whatever is in the directory in which it runs."""
_INTERPRETER: Final = re.compile(r"python[0-9.]*")
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}")
"""Of a file in its directory, which no option and no other directory is."""
_HOME: Final = "KETTLE_HOME="
_ONES_OWN: Final = ("jobbatchname", "jobprio", "jobnotification", "leavejobinqueue")
_LABELS: Final = "prominence"
"""Beginning of the names of what is only shown."""


class SentDag(msgspec.Struct, frozen=True, kw_only=True):
    """What is run, by the names of files that are sent."""

    file: str
    """The DAG file, or the document."""
    files: Sequence[str]
    rescue_file: str = ""
    max_idle: int | None = None
    max_jobs: int | None = None


def dag_job_ad(dag: SentDag, *, interpreter: str, environment: Sequence[str]) -> Ad:
    """The ad; `environment`: how its process finds the pool, as `NAME=value`."""
    options = SubmitDagOptions(
        dag_files=[dag.file],
        max_idle=dag.max_idle,
        max_jobs=dag.max_jobs,
        rescue_file=dag.rescue_file,
    )
    names = file_names(options)
    return {
        "JobUniverse": int(Universe.SCHEDULER),
        "Cmd": interpreter,
        "TransferExecutable": False,
        "Arguments": join_v2([*PROGRAM, *_arguments(options, names.lock_file)]),
        "Environment": join_v2(list(environment)),
        "In": "/dev/null",
        "TransferIn": False,
        "Out": names.lib_out,
        "Err": names.lib_err,
        "ShouldTransferFiles": "YES",
        "WhenToTransferOutput": "ON_EXIT",
        "TransferInput": ",".join(dag.files),
        "RequestCpus": 0,  # it only waits, and takes no core from other local jobs
        "RequestMemory": 128,
        "RequestDisk": 1024 * 1024,
        "Requirements": Expr("true"),
        "OnExitRemove": Expr(ON_EXIT_REMOVE),
        "RemoveKillSig": "SIGUSR1",
        "OtherJobRemoveRequirements": "DAGManJobId =?= $(ClusterId)",
    }


def _arguments(options: SubmitDagOptions, lock: str) -> list[str]:
    found = ["-Lockfile", lock, "-Dag", options.primary]
    if options.rescue_file:
        found += ["-RescueFile", options.rescue_file]
    for flag, limit in (("-MaxIdle", options.max_idle), ("-MaxJobs", options.max_jobs)):
        if limit is not None:
            found += [flag, f"{limit}"]
    return found


def steers_nothing(name: str) -> bool:
    """
    Whether an attribute of a job on the access point is only shown, or says when it runs and when it leaves the queue.
    """
    folded = name.lower()
    return folded in _ONES_OWN or folded.startswith(_LABELS)


def difference(ad: Mapping[str, Scalar], *, interpreter: str, homes: Sequence[str]) -> str:
    """
    The first attribute that is not as `dag_job_ad` would make it; empty: none.

    `interpreter`: the one of the access point; `homes`: the directories by which its owner's processes may find the pool.
    """
    said = {name.lower(): value for name, value in ad.items()}
    if len(said) < len(ad):
        return "an attribute that is said twice"
    program, environment = said.get("cmd"), said.get("environment")
    if not isinstance(program, str) or not _is_one_of(program, interpreter):
        return "Cmd"
    if environment not in {"", *(join_v2([f"{_HOME}{home}"]) for home in homes)}:
        return "Environment"
    dag = _dag_of(said)
    if dag is None:
        return "Arguments"
    if not all(map(_NAME.fullmatch, dag.files)) or not {dag.file, dag.rescue_file or dag.file} <= {
        *dag.files
    }:
        return "TransferInput"
    made = dag_job_ad(dag, interpreter=program, environment=split_v2(str(environment)))
    wanted: Ad = {name.lower(): value for name, value in made.items()}
    may_be = {WORKFLOW_FILE.lower(): dag.file, **wanted}
    for name, value in ad.items():
        folded = name.lower()
        if not (_same(value, may_be[folded]) if folded in may_be else steers_nothing(name)):
            return name
    return next((name for name in made if name.lower() not in said), "")


def _same(one: Scalar, other: Scalar) -> bool:
    return type(one) is type(other) and one == other


def _is_one_of(program: str, interpreter: str) -> bool:
    """Whether that is the interpreter, by whichever of its names."""
    path = PurePath(program)
    return path.parent == PurePath(interpreter).parent and _INTERPRETER.fullmatch(path.name) is not None


def _dag_of(said: Mapping[str, Scalar]) -> SentDag | None:
    """What the arguments say; None: they are no such arguments."""
    arguments, files = said.get("arguments"), said.get("transferinput")
    if not isinstance(arguments, str) or not isinstance(files, str):
        return None
    try:
        words = split_v2(arguments)
        if tuple(words[: len(PROGRAM)]) != PROGRAM:
            return None
        options = of_dagman(words[len(PROGRAM) :])
    except (OptionError, QuotingError):
        return None
    if len(options.dag_files) != 1 or not _NAME.fullmatch(options.primary):
        return None
    return SentDag(
        file=options.primary,
        files=files.split(","),
        rescue_file=options.rescue_file,
        max_idle=options.max_idle,
        max_jobs=options.max_jobs,
    )
