"""
From commands to attributes: one function for each group of commands that belong together.

Each takes the lookup and returns a part of the job ad.  What it looked up decides whether its part is worked out
once for the whole cluster or for each job, so a rule must look at nothing but the lookup.
"""

import os
import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from kettle.jobs import quoting
from kettle.submit.accounting import charging, concurrency
from kettle.submit.checkpoints import checkpoints
from kettle.submit.commands import CUSTOM
from kettle.submit.containers import CONTAINERS, container_of, container_options
from kettle.submit.errors import PlacelessError
from kettle.submit.expressions import integer, scalar, unquoted
from kettle.submit.job_tokens import job_tokens
from kettle.submit.kill_signals import signals
from kettle.submit.late_materialization import pace
from kettle.submit.logs import logs
from kettle.submit.lookup import Lookup, Setting, flag, is_settled, placed, readable
from kettle.submit.nodes import nodes
from kettle.submit.notification import mails
from kettle.submit.policies import policies
from kettle.submit.published_services import published_services
from kettle.submit.scitokens import token_file
from kettle.submit.simple_commands import on_hold, plain
from kettle.submit.tasks import has_tasks, shown_program, tasks
from kettle.submit.x509_proxy import proxy
from kettle_wire.ads.types import Ad, Scalar
from kettle_wire.codes import Universe

NULL_FILE: Final = "/dev/null"

_NOT_CARRIED_OUT: Final = frozenset({"java", "vm", "standard"})
_UNIVERSES: Final[Mapping[str, int]] = {
    "vanilla": int(Universe.VANILLA),
    "scheduler": int(Universe.SCHEDULER),
    "local": int(Universe.LOCAL),
    "parallel": int(Universe.PARALLEL),
    "grid": int(Universe.GRID),
    **dict.fromkeys(CONTAINERS, int(Universe.VANILLA)),
}
"""JobUniverse by name."""
_CARRIED_OUT: Final = "vanilla, container, parallel, grid, local or scheduler"
_SCHEDD_OWNED: Final = frozenset(
    {
        "clusterid",
        "procid",
        "owner",
        "user",
        "qdate",
        "globaljobid",
        "jobstatus",
        "enteredcurrentstatus",
        "mytype",
    }
)
_LITERAL: Final = re.compile(r'"[^"\\$]+"')
"""Somebody's name: the access point looks whether it is that of who submits."""
_STREAMS: Final = (("input", "In"), ("output", "Out"), ("error", "Err"))

CONSTANTS: Final[Mapping[str, Scalar]] = {
    "JobUniverse": int(Universe.VANILLA), "CommittedSlotTime": 0, "CommittedSuspensionTime": 0, "CommittedTime": 0,
    "CumulativeSuspensionTime": 0, "LeaveJobInQueue": False, "MaxHosts": 1, "MinHosts": 1, "NumCkpts": 0,
    "NumRestarts": 0, "TotalSuspensions": 0,
}  # fmt: skip
"""
What every job starts with, beside what the schedd sets itself (JobStatus, QDate, the counters of its runs).
"""


def identity(lookup: Lookup) -> Ad:
    """What a person calls the jobs, and how much they matter to that person."""
    ad: Ad = {"JobPrio": 0, "JobSubmitMethod": lookup.site.submit_method}
    if universe := lookup.get("universe"):
        ad["JobUniverse"] = _universe(universe)
    for name, attribute in (
        ("priority", "JobPrio"),
        ("job_lease_duration", "JobLeaseDuration"),
        ("core_size", "CoreSize"),
    ):
        if given := lookup.get(name):
            try:
                ad[attribute] = integer(given.text, name)
            except PlacelessError as error:
                raise placed(given, error) from error
    lease = ad.get("JobLeaseDuration")
    if isinstance(lease, int) and 0 < lease < 20:
        ad["JobLeaseDuration"] = 20
    return ad


def _universe(given: Setting) -> int:
    name = given.text.lower()
    if name.isdecimal() and int(name) in _UNIVERSES.values():
        return int(name)
    if name not in _UNIVERSES:
        given.refuse(
            f"the {given.text} universe is not carried out by this version of Kettle; use {_CARRIED_OUT}"
            if name in _NOT_CARRIED_OUT
            else f"there is no universe '{given.text}'; use {_CARRIED_OUT}"
        )
    return _UNIVERSES[name]


def executable(lookup: Lookup) -> Ad:
    """What is run."""
    given = lookup.get("executable")
    if (without := _without_file(lookup, given)) is not None:
        return without
    if given is None:
        lookup.refuse("there is no executable before this queue statement; write: executable = PATH")
    transfer = flag(lookup, "transfer_executable", default=True)
    if not transfer:
        return {"Cmd": given.text, "TransferExecutable": False}
    path = lookup.cwd / unquoted(given.text)
    if lookup.site.check_files and is_settled(path):
        if why := lookup.disk.unreadable(path):
            given.refuse(f"the executable {path} {why}")
        if path.is_dir():
            given.refuse(f"the executable {path} is a directory")
    return {"Cmd": str(path)}


def _without_file(lookup: Lookup, given: Setting | None) -> Ad | None:
    """Of a job whose program is no file that comes along; None: it is one."""
    if (text := lookup.get("shell")) is not None:
        if given is not None:
            lookup.idle(text, "shell is what /bin/sh is to do, and executable is a program: say one of them")
        return {"Cmd": "/bin/sh", "TransferExecutable": False}
    if has_tasks(lookup):
        if given is not None:
            given.refuse("the tasks are the programs of the job: remove executable, or tasks")
        return {"Cmd": shown_program(lookup), "TransferExecutable": False}
    if given is None and container_of(lookup) is not None:
        return {"Cmd": "", "TransferExecutable": False}  # the image's entry point
    return None


def arguments(lookup: Lookup) -> Ad:
    """With which words."""
    given = lookup.get("arguments")
    if text := lookup.get("shell"):
        if given is not None:
            given.refuse("shell has no arguments: write them into its text")
        return {"Arguments": quoting.join_v2(["-c", text.text])}
    if newer := lookup.get("arguments2"):
        if given is not None and not flag(lookup, "allow_arguments_v1", default=False):
            newer.refuse("arguments2 and arguments are the same: say one of them")
        return _arguments(newer, new=True)
    return {"Arguments": ""} if given is None else _arguments(given, new=False)


def _arguments(given: Setting, *, new: bool) -> Ad:
    try:
        if new or quoting.is_v2(given.text):
            raw = quoting.unquote_v2(given.text)
            return {"Arguments": quoting.join_v2(quoting.split_v2(raw))}
        return {"Args": " ".join(quoting.split_v1(quoting.unescape_v1(given.text)))}
    except quoting.QuotingError as error:
        raise placed(given, error) from error


def environment(lookup: Lookup) -> Ad:
    """With which variables: what `getenv` takes along, then what is given."""
    found: dict[str, str] = {}
    taken, given = lookup.get("getenv"), lookup.get("environment")
    if newer := lookup.get("environment2"):
        if given is not None and not flag(lookup, "allow_environment_v1", default=False):
            newer.refuse("environment2 and environment are the same: say one of them")
        given = newer
    if taken:
        found |= _taken(taken.text, lookup.environ)
    if given:
        try:
            if newer or quoting.is_v2(given.text):
                entries = quoting.split_v2(quoting.unquote_v2(given.text))
            else:
                entries = quoting.described_environment_v1(given.text)
            found |= quoting.environment_of(entries)
        except quoting.QuotingError as error:
            raise placed(given, error) from error
    return {"Environment": quoting.join_v2([f"{name}={value}" for name, value in found.items()])}


def _taken(text: str, environ: Mapping[str, str]) -> dict[str, str]:
    if text.lower() in {"true", "yes", "t", "1"}:
        return dict(environ)
    if text.lower() in {"false", "no", "f", "0"}:
        return {}
    patterns = text.lower().replace(",", " ").replace(";", " ").split()
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")] or ["*"]
    unwanted = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    return {
        name: value
        for name, value in environ.items()
        if any(fnmatchcase(name.lower(), pattern) for pattern in wanted)
        and not any(fnmatchcase(name.lower(), pattern) for pattern in unwanted)
    }


def directory(lookup: Lookup) -> Ad:
    """Where the job's files are on this side."""
    iwd = Path(_normal(lookup.iwd()))
    given = lookup.get("initialdir")
    if given and lookup.site.check_files and is_settled(iwd) and not os.path.isdir(iwd):  # noqa: PTH112 - pathlib's raises where we may not look
        given.refuse(f"the initialdir {iwd} is not a directory")
    slash = "/" if given and unquoted(given.text).endswith("/") and str(iwd) != "/" else ""
    return {"Iwd": f"{iwd}{slash}"}


def streams(lookup: Lookup) -> Ad:
    """Standard input, output and error."""
    ad: Ad = {}
    iwd = lookup.iwd()
    home = iwd
    if results := lookup.get("output_directory"):
        if stray := lookup.get("output_destination"):
            stray.refuse("results go to output_destination or to output_directory: say one of them")
        home = iwd / unquoted(results.text)
        ad["OutputDirectory"] = str(home)
    for name, attribute in _STREAMS:
        given = lookup.get(name)
        streamed = flag(lookup, f"stream_{name}", default=False)
        moved = flag(lookup, f"transfer_{name}", default=True) if name == "input" else True
        if given is None or given.text == NULL_FILE:
            ad |= {attribute: NULL_FILE, f"Transfer{attribute}": False}
            continue
        if not moved:  # it is on the machine already
            ad |= {attribute: unquoted(given.text), f"Transfer{attribute}": False}
            continue
        ad |= {attribute: unquoted(given.text), f"Stream{attribute}": streamed}
        path = (iwd if name == "input" else home) / unquoted(given.text)
        if not is_settled(path) or not lookup.checks_files:
            continue
        if name == "input":
            readable(lookup, given, unquoted(given.text))
        made = results is not None and not os.path.lexists(home)  # with its first result
        if name != "input" and not made and (why := lookup.disk.unwritable(path)):
            given.refuse(f"the {name} file cannot be written: {why}")
    return ad


def rank(lookup: Lookup) -> Ad:
    """Which machines the job likes best."""
    given = lookup.get("rank")
    if given is None:
        return {"Rank": 0.0}
    try:
        return {"Rank": scalar(given.text)}
    except PlacelessError as error:
        raise placed(given, error) from error


def custom(lookup: Lookup) -> Ad:
    """`+Attr = ...` and `MY.Attr = ...`: last, over everything else."""
    ad: Ad = {}
    for key, assignment in lookup.given.items():
        if not key.startswith(CUSTOM):
            continue
        name = assignment.name[len(CUSTOM) :]
        own_name = lookup.tolerant and name.lower() == "owner" and _LITERAL.fullmatch(assignment.text)
        if name.lower() in _SCHEDD_OWNED and not own_name:
            raise assignment.refused(f"the attribute {name} is set by the schedd and cannot be given")
        setting = lookup.expanded(assignment)
        try:
            ad[name] = scalar(setting.text or "undefined")  # so programs write that they have no value for it
        except PlacelessError as error:
            raise placed(setting, error) from error
    return ad


def _normal(path: Path) -> str:
    text = str(path)
    return text.rstrip("/") or "/"


RULES: Final[tuple[Callable[[Lookup], Ad], ...]] = (
    identity,
    nodes,
    executable,
    arguments,
    environment,
    directory,
    streams,
    logs,
    rank,
    charging,
    concurrency,
    pace,
    policies,
    checkpoints,
    signals,
    mails,
    proxy,
    token_file,
    job_tokens,
    published_services,
    container_options,
    tasks,
    plain,
    on_hold,
)
