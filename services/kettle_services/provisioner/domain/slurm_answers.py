"""What Slurm's commands say: states of jobs, reasons why they wait, and errors."""

import math
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from kettle_services.provisioner.domain.identity import marked
from kettle_services.provisioner.domain.words import cleaned
from kettle_wire.leases import ErrorClass, MachineFound, MachineState

FORMAT: Final = "%i|%T|%V|%r|%j|%k"
"""Of `squeue`: number, state, time of submission, reason, name and comment, which comes last since it may say anything."""
_FIELDS: Final = 6
_NUMBER: Final = re.compile(r"\d+")

_STOPPING: Final = frozenset({"COMPLETING", "STAGE_OUT", "SIGNALING"})
_FINAL: Final = frozenset({
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED",
    "TIMEOUT",
})  # fmt: skip
_WAITING: Final = frozenset(
    {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"}
)

_NEVER: Final = re.compile(
    r"BadConstraints|DependencyNeverSatisfied|PartitionTimeLimit|PartitionNodeLimit|InvalidAccount|InvalidQOS|"
    r"JobHeldAdmin|JobHeldUser|AccountNotAllowed|QOSNotAllowed|launch_failed_requeued_held"
)
_LIMITED: Final = re.compile(r"^(QOS|Assoc|Max\w*PerAccount|JobArrayTaskLimit|Licenses)")
_CROWDED: Final = re.compile(
    r"^(Resources|Priority|Reservation|ReqNodeNotAvail|NodeDown|PartitionDown|PartitionInactive|Nodes.required|BeginTime)"
)

_ERRORS: Final = (
    (
        ErrorClass.AUTH,
        r"Access/permission denied|authentication|munge|Invalid user id|not authorized|group not permitted|credential",
    ),
    (ErrorClass.QUOTA, r"violates accounting/QOS policy|AssocMax|AssocGrp|QOSMax|QOSGrp|job submit limit"),
    (ErrorClass.IMAGE, r"invalid partition"),
    (ErrorClass.RATE, r"temporarily unable to accept|RPC limit|rate limit|job queue full"),
    (
        ErrorClass.TRANSIENT,
        r"Resource temporarily unavailable|partition is (down|not available)|submission is disabled",
    ),
)


def longest(output: str, partition: str) -> float:
    """
    For how many seconds a job of a partition may last, as `sinfo --format='%P %l'` says; no name means that of the default partition. What
    is not said or cannot be read has no limit.
    """
    for line in output.splitlines():
        name, _, limit = line.strip().partition(" ")
        if name.rstrip("*") == partition or (not partition and name.endswith("*")):
            return _seconds(limit)
    return math.inf


def _seconds(limit: str) -> float:
    """A time limit as Slurm writes it: `minutes:seconds`, `hours:minutes:seconds`, `days-hours:minutes:seconds`."""
    days, _, rest = limit.rpartition("-")
    parts = rest.split(":")
    if not 2 <= len(parts) <= 3 or not all(each.isdecimal() for each in [*parts, days or "0"]):
        return math.inf
    seconds = sum(int(each) * unit for each, unit in zip(reversed(parts), (1, 60, 3600), strict=False))
    return float(int(days or 0) * 86_400 + seconds)


class SlurmJob(msgspec.Struct, frozen=True):
    """A line of `squeue`."""

    number: str
    machine: MachineFound


def jobs(output: str) -> Iterator[SlurmJob]:
    """
    The machines in an answer of `squeue`; lines of jobs that are none of ours, or no lines of jobs, are passed over.
    """
    for line in output.splitlines():
        fields = line.split("|", _FIELDS - 1)
        if len(fields) != _FIELDS or not _NUMBER.fullmatch(fields[0]):
            continue
        number, state, submitted, reason, name, comment = fields
        if (ours := marked(comment) or marked(name)) is None:
            continue
        yield SlurmJob(number, _machine(number, state, submitted, reason, ours))


def _machine(number: str, state: str, submitted: str, reason: str, ours: tuple[str, str]) -> MachineFound:
    deployment, lease = ours
    here, error = standing(state, reason)
    said = state if reason in {"", "None"} else f"{state}: {reason}"
    created = float(submitted) if submitted.isdecimal() else 0.0
    return MachineFound(
        handle=number,
        state=here,
        lease=lease,
        deployment=deployment,
        words=cleaned(said),
        error=error,
        created=created,
    )


def standing(state: str, reason: str) -> tuple[MachineState, ErrorClass | None]:
    """
    What a state, and for one that waits its reason, is for us.

    A state that is not known here is a machine that runs: absence is never guessed.
    """
    word = (
        state.split(maxsplit=1)[0].rstrip("+") if state.strip() else ""
    )  # sacct: "CANCELLED by 1000", "CANCELLED+"
    if word in _FINAL:
        return MachineState.GONE, None
    if word in _STOPPING:
        return MachineState.STOPPING, None
    if word not in _WAITING:
        return MachineState.RUNNING, None
    if _NEVER.search(reason):
        return MachineState.BROKEN, ErrorClass.REQUEST
    if _LIMITED.search(reason):
        return MachineState.PENDING, ErrorClass.QUOTA
    return MachineState.PENDING, ErrorClass.CAPACITY if _CROWDED.search(reason) else None


def accounted(output: str, deployment: str) -> MachineState | None:
    """What `sacct --format=State,JobName,Comment` has of a job: gone, or there; None: nothing of ours."""
    for line in output.splitlines():
        state, _, names = line.partition("|")
        if any(found is not None and found[0] == deployment for found in map(marked, names.split("|"))):
            return standing(state, "")[0]
    return None


def error_of(errors: str) -> ErrorClass:
    """The class of a refusal."""
    for error, pattern in _ERRORS:
        if re.search(pattern, errors, re.IGNORECASE):
            return error
    return ErrorClass.REQUEST
