"""
What the program of a job may say of itself: which attributes of its job's ad it may set, and how much of it is recorded.

Pure. The queue keeps who the job is and what has happened to it. What any part of the system reads to act on it, a job does
not change while it runs: it would take effect in its next run, with somebody else's rights. So a job may set only what
nothing of ours reads; a test compares the code with `protected_attributes.py` and the families of names here.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from kettle.jobs.ad import KEPT
from kettle.jobs.protected_attributes import ACTED_ON
from kettle_wire.ads.types import Ad, Scalar

MOST_ATTRIBUTES: Final = 100
"""In one message, and of those that one run of a job adds to its ad."""
LONGEST_VALUE: Final = 4096
"""Bytes of the text of a value."""
OF_BATCH_SYSTEMS: Final = ("GridJobId", "GridJobStatus")
"""What an entrypoint says of jobs at its batch systems, in place of their programs."""
MOST_NOTES: Final = 20
LONGEST_NOTE: Final = 1024
"""Characters of a line for the job event log."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_WORDS: Final = frozenset(
    {"true", "false", "undefined", "error", "is", "isnt", "my", "target", "parent", "other"}
)
_IDENTITY: Final = (
    "user",
    "osuser",
    "mytype",
    "targettype",
    "acctgroup",
    "acctgroupuser",
    "accountinggroup",
    "projectname",
)
_READ_ONCE: Final = (
    "jobuniverse", "jobprio", "requirements", "rank", "concurrencylimits", "minhosts", "maxhosts", "nicejob",
    "allowedexecuteduration", "allowedjobduration", "onexithold", "onexitremove", "periodichold", "periodicrelease",
    "periodicremove", "periodicvacate", "timerremove", "deferraltime", "deferralwindow", "jobnotification",
    "notifyuser", "jobleaseduration", "totalsubmitprocs",
)  # fmt: skip
_PREFIXES: Final = (
    "authtoken", "request", "require", "cron", "deferral", "autocluster", "transfer", "want", "container", "docker", "encrypt",
    "dontencrypt", "ec2", "aws", "s3", "checkpoint", "success", "periodic", "onexit", "kill", "hold", "remove", "vacate",
    "submit", "remote", "slot", "kettle", "hook", "oauth", "x509", "assigned", "preempting", "preserve", "env", "arg",
    "jobmaterialize", "flock", "machineattr", "lastmatch", "retryrequest", "nextrequest", "maxrequest", "noopjob",
    "jobmaterialize", "flock", "grid", "userlog", "dagman", "jobadinformation", "prominence",
    "cvmfs", "hascvmfs", "hassingularity", "hasxrootd", "xrootd", "httpcache", "probes", "lastchecked", "services", "interactive",
)  # fmt: skip
"""Families of names that are refused as a whole: their next member is refused before anybody thinks of it."""


def refusal(name: str) -> str:
    """Why a job may not set this attribute; empty if it may."""
    if not _NAME.fullmatch(name) or name.lower() in _WORDS:
        return f"{name!r} is no name of an attribute"
    folded = name.lower()
    if folded in KEPT or folded in _IDENTITY:
        return f"{name} is kept by the queue, and nobody else sets it"
    if folded in _READ_ONCE or folded in ACTED_ON or folded.startswith(_PREFIXES):
        return f"{name} counts as it was submitted: what the system acts on, no job sets while it runs"
    return ""


def sayable(attributes: Ad, *, there: bool = False) -> Ad:
    """
    Those attributes that a job may set, and no more than it may set at once; `there`: it is at a batch system, of which an
    entrypoint tells.
    """
    told = OF_BATCH_SYSTEMS if there else ()
    kept = [
        (name, value)
        for name, value in attributes.items()
        if (name in told or not refusal(name)) and _short(value)
    ]
    return dict(kept[:MOST_ATTRIBUTES])


def lines(notes: Iterable[str]) -> list[str]:
    """Notes as they are recorded: each on one line, not too long, not too many."""
    return [" ".join(note.split())[:LONGEST_NOTE] for note in list(notes)[:MOST_NOTES]]


def spelled(attributes: Ad, ad: Mapping[str, Scalar]) -> Ad:
    """The attributes under the names that the ad has for them already: names are the same in any case."""
    known = {name.lower(): name for name in ad}
    return {known.get(name.lower(), name): value for name, value in attributes.items()}


def _short(value: Scalar) -> bool:
    text = value if isinstance(value, str) else getattr(value, "expr", "")
    return len(text) <= LONGEST_VALUE and "\0" not in text
