"""What EC2 says: codes of errors, states of instances, and how a machine is asked for."""

import hashlib
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kettle_services.provisioner.domain import web_answers
from kettle_services.provisioner.domain.words import cleaned
from kettle_wire.leases import ErrorClass, MachineFound, MachineState

DEPLOYMENT: Final = "kettle-deployment"
LEASE: Final = "kettle-lease"
"""Tags of instances and their volumes."""
THERE: Final = ("pending", "running", "shutting-down", "stopping", "stopped")
WOULD_WORK: Final = "DryRunOperation"
"""The code of the answer to a dry run of something that would have been done."""

_CLASSES: Final[Mapping[ErrorClass, tuple[str, ...]]] = {
    ErrorClass.CAPACITY: (
        "InsufficientInstanceCapacity", "InsufficientHostCapacity", "InsufficientReservedInstanceCapacity",
        "InsufficientCapacityOnOutpost", "SpotMaxPriceTooLow", "InsufficientFreeAddressesInSubnet",
    ),
    ErrorClass.QUOTA: (
        "InstanceLimitExceeded", "VcpuLimitExceeded", "MaxSpotInstanceCountExceeded", "VolumeLimitExceeded",
        "PendingSnapshotLimitExceeded", "MaxSpotFleetRequestCountExceeded", "AddressLimitExceeded",
    ),
    ErrorClass.AUTH: (
        "AuthFailure", "UnauthorizedOperation", "ExpiredToken", "ExpiredTokenException", "RequestExpired", "OptInRequired",
        "InvalidClientTokenId", "SignatureDoesNotMatch", "IncompleteSignature", "MissingAuthenticationToken", "Blocked",
        "AccessDenied", "AccessDeniedException", "PendingVerification", "UnrecognizedClientException",
    ),
    ErrorClass.RATE: ("RequestLimitExceeded", "Throttling", "ThrottlingException", "EC2ThrottledException", "SlowDown"),
    ErrorClass.TRANSIENT: ("Unavailable", "ServiceUnavailable", "ResourceNotReady", "ConcurrentTagAccess"),
}  # fmt: skip
_IMAGES: Final = ("InvalidAMIID", "InvalidAMIName", "InvalidLaunchTemplate", "InvalidImageID")
_STATES: Final[Mapping[str, MachineState]] = {
    "pending": MachineState.PENDING,
    "running": MachineState.RUNNING,
    "shutting-down": MachineState.STOPPING,
    "stopping": MachineState.STOPPING,
    "stopped": MachineState.BROKEN,
    "terminated": MachineState.GONE,
}


def error_of(code: str, status: int) -> ErrorClass | None:
    """
    The class of an error by its code, else by the status of the answer; None: something may have been done all the same.
    """
    for error, codes in _CLASSES.items():
        if code in codes:
            return error
    if code.startswith(_IMAGES):
        return ErrorClass.IMAGE
    if web_answers.is_in_doubt(status) or code == "IdempotentParameterMismatch":
        return None
    return web_answers.error_of(status)


def is_unknown(code: str) -> bool:
    """Whether there is no such instance."""
    return code in {"InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed"}


def client_token(deployment: str, lease: str, attempt: int) -> str:
    """
    What makes two requests one: of 64 characters at most, and different for each attempt of a lease of this deployment.
    """
    return hashlib.sha256(f"{deployment}/{lease}/{attempt}".encode()).hexdigest()


def instances(page: Mapping[str, Any]) -> Iterator[MachineFound]:
    """The machines in an answer of DescribeInstances."""
    for reservation in page.get("Reservations", ()):
        for each in reservation.get("Instances", ()):
            yield _instance(each)


def cores(page: Mapping[str, Any]) -> int:
    """The cores, as quotas count them, of the instances in an answer of DescribeInstances that are no spot ones."""
    options = [
        each.get("CpuOptions", {})
        for reservation in page.get("Reservations", ())
        for each in reservation.get("Instances", ())
        if each.get("InstanceLifecycle") != "spot"
    ]
    return sum(int(each.get("CoreCount", 1)) * int(each.get("ThreadsPerCore", 1)) for each in options)


def _instance(said: Mapping[str, Any]) -> MachineFound:
    tags = {each["Key"]: each["Value"] for each in said.get("Tags", ())}
    word = said["State"]["Name"]
    reason = said.get("StateReason", {})
    begun = said.get("LaunchTime")
    state = _STATES.get(
        word, MachineState.RUNNING
    )  # a state that is not known here is a machine that costs something
    return MachineFound(
        handle=said["InstanceId"],
        state=state,
        lease=tags.get(LEASE, ""),
        deployment=tags.get(DEPLOYMENT, ""),
        words=cleaned(f"{word}: {reason['Message']}" if reason.get("Message") else word),
        error=_reason(reason.get("Code", ""), state),
        created=begun.timestamp() if begun is not None else 0.0,
    )


def _reason(code: str, state: MachineState) -> ErrorClass | None:
    """Why an instance ended, as far as it is the offer that should be closed for it."""
    match code:
        case (
            "Server.InsufficientInstanceCapacity"
            | "Server.SpotInstanceTermination"
            | "Server.SpotInstanceShutdown"
        ):
            return ErrorClass.CAPACITY
        case "Client.VolumeLimitExceeded":
            return ErrorClass.QUOTA
        case "Client.InvalidSnapshot.NotFound" | "Client.InternalError":
            return ErrorClass.IMAGE
        case _:
            return ErrorClass.TRANSIENT if state is MachineState.BROKEN else None


def gibibytes(megabytes: int) -> int:
    """Of a volume for so many MB."""
    return math.ceil(megabytes / 1024)
