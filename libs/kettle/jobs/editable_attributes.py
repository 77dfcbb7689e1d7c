"""
Which attributes of a job in the queue a person may set.

Pure. HTCondor's rule: who a job is and what has happened to it is kept by the queue, and nobody sets it. Beside these, what
was looked at when the job was submitted, and is the same as long as it is in the queue, is refused: who is charged, how its
cluster is made, in which universe and at which times it runs, to which set it belongs.
"""

import re
from typing import Final

from kettle.jobs.ad import KEPT, UNLESS_SAID
from kettle.jobs.credential_attributes import CREDENTIAL
from kettle.jobs.crontab import FIELDS
from kettle.jobs.pool_access import SESSION
from kettle_wire.session_attributes import MARKS

MOST_ATTRIBUTES: Final = 100
"""In one command."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_IDENTITY: Final = frozenset({"user", "osuser", "mytype", "targettype", "totalsubmitprocs", SESSION.lower()})
_CHARGED: Final = frozenset({"acctgroup", "acctgroupuser", "accountinggroup", "nicejob", "niceuser"})
_SETS: Final = frozenset({"jobsetid", "jobsetname"})
_TIMES: Final = frozenset({"deferraltime", "deferralwindow", "deferralpreptime", *map(str.lower, FIELDS)})
_PACE: Final = "jobmaterialize"
_SPELLED: Final = {name.lower(): name for name in UNLESS_SAID}


def refusal(name: str) -> str:
    """Why nobody may set this attribute of a job in the queue, in one sentence; empty if its owner may."""
    folded = name.lower()
    if not _NAME.fullmatch(name):
        return f"{name!r} is not the name of an attribute"
    if folded in KEPT or folded in _IDENTITY or folded in CREDENTIAL or folded in MARKS:
        return f"the attribute {name} is kept by the queue: nobody else sets it"
    for names, why in (
        (_CHARGED, "it says who is charged for the job"),
        (_SETS, "it says to which set the job belongs"),
        (_TIMES, "it says at which times the job runs"),
        ({"jobuniverse"}, "it says how the job is run at all"),
    ):
        if folded in names:
            return (
                f"the attribute {name} stays as it was submitted: {why}; remove the job and submit it again"
            )
    if folded.startswith(_PACE):
        return (
            f"the attribute {name} is that of a cluster, and is set alone: kettle edit CLUSTER {name}=NUMBER"
        )
    return ""


def spelled(name: str) -> str:
    """The usual spelling of the name in ads, if the submitter did not set it."""
    return _SPELLED.get(name.lower(), name)
