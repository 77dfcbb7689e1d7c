"""A pod as it is asked for, and what Kubernetes says of pods."""

import hashlib
import math
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec

from kettle_services.provisioner.domain import web_answers
from kettle_services.provisioner.domain.words import cleaned
from kettle_wire.leases import ErrorClass, MachineFound, MachineState
from kettle_wire.worker_pools import Offer

DEPLOYMENT: Final = "kettle-deployment"
LEASE: Final = "kettle-lease"
"""Labels."""
_SCRIPT: Final = "KETTLE_WORKER_SCRIPT"
_IMAGE_REASONS: Final = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}
)
_START_REASONS: Final = frozenset(
    {"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"}
)


class KubernetesOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What an offer may say besides its image, which is its `template`, and its zone."""

    service_account: str = ""
    """Of the pod, which gets no token of it."""
    node_selector: list[str] = []
    """Each as `key=value`."""
    tolerations: list[str] = []
    """Taints that do not matter, each as `key` or `key=value`."""
    pull_secrets: list[str] = []
    """Names of secrets with which the image is fetched."""
    priority_class: str = ""
    """A low one lets others have the node."""
    runtime_class: str = ""
    """What runs its container."""
    gpu: str = "nvidia.com/gpu"
    """The resource that its GPUs are."""


class Pod(msgspec.Struct, frozen=True):
    """What of it we look at."""

    metadata: dict[str, Any] = {}
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


class PodList(msgspec.Struct, frozen=True):
    """A page of pods."""

    items: list[Pod]
    metadata: dict[str, Any] = {}

    @property
    def rest(self) -> str:
        """Where the next page begins; empty: this was the last."""
        return str(self.metadata.get("continue") or "")


class QuotaList(msgspec.Struct, frozen=True):
    """The quotas of a namespace."""

    items: list[dict[str, Any]]


class Status(msgspec.Struct, frozen=True):
    """What is said instead of an object."""

    message: str = ""
    reason: str = ""


def pod_name(deployment: str, lease: str) -> str:
    """Of a lease's pod: the same name for each try, and another one for each deployment."""
    return f"{lease}-{hashlib.sha256(deployment.encode()).hexdigest()[:8]}"


def pod(
    offer: Offer,
    options: KubernetesOptions,
    *,
    deployment: str,
    lease: str,
    script: str,
    life: float,
    grace: int,
) -> dict[str, Any]:
    """
    The object: it runs once, ends at its deadline, and has `grace` seconds between SIGTERM and SIGKILL.

    The script has the token.  It is in the environment of one process, which forgets it before it starts others, and in no
    command line, which every job in the pod may read.
    """
    resources = {"cpu": str(offer.cpus), "memory": f"{offer.memory}Mi"}
    if offer.disk:
        resources["ephemeral-storage"] = f"{offer.disk}Mi"
    if offer.gpus:
        resources[options.gpu] = str(offer.gpus)
    selector = dict(_pairs(options.node_selector))
    if offer.zone:
        selector["topology.kubernetes.io/zone"] = offer.zone
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": math.ceil(life),
        "terminationGracePeriodSeconds": grace,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "containers": [
            {
                "name": "worker",
                "image": offer.template,
                "command": ["sh", "-c", f'eval "unset {_SCRIPT}\n${_SCRIPT}"'],
                "env": [{"name": _SCRIPT, "value": script}],
                "resources": {"requests": resources, "limits": resources},
            }
        ],
    }
    known: dict[str, Any] = {
        "serviceAccountName": options.service_account,
        "nodeSelector": selector,
        "tolerations": [_toleration(key, value) for key, value in _pairs(options.tolerations)],
        "imagePullSecrets": [{"name": each} for each in options.pull_secrets],
        "priorityClassName": options.priority_class,
        "runtimeClassName": options.runtime_class,
    }
    labels = {"app.kubernetes.io/managed-by": "kettle", DEPLOYMENT: deployment, LEASE: lease}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod_name(deployment, lease), "labels": labels},
        "spec": {**spec, **{key: value for key, value in known.items() if value}},
    }


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    for each in words:
        key, _, value = each.partition("=")
        yield key, value


def _toleration(key: str, value: str) -> dict[str, str]:
    return {"key": key, "operator": "Equal", "value": value} if value else {"key": key, "operator": "Exists"}


def machine(found: Pod) -> MachineFound:
    """What a pod is for us; it is there as long as its object is, also when it has ended."""
    metadata, labels = found.metadata, web_answers.part(found.metadata, "labels")
    state, error, words = _standing(found)
    return MachineFound(
        handle=f"{metadata.get('name', '')}/{metadata.get('uid', '')}",
        state=MachineState.STOPPING if metadata.get("deletionTimestamp") else state,
        lease=labels.get(LEASE, ""),
        deployment=labels.get(DEPLOYMENT, ""),
        words=cleaned(words),
        error=error,
    )


def _standing(found: Pod) -> tuple[MachineState, ErrorClass | None, str]:
    status = found.status
    phase = str(status.get("phase") or "Pending")
    said = ": ".join(str(each) for each in (phase, status.get("reason"), status.get("message")) if each)
    if phase == "Succeeded":
        return MachineState.BROKEN, None, said
    if phase == "Failed":
        return MachineState.BROKEN, _ended(str(status.get("reason") or "")), said
    if phase != "Pending":
        return MachineState.RUNNING, None, said
    for container in status.get("containerStatuses") or ():
        waiting = web_answers.part(web_answers.part(container, "state"), "waiting")
        reason, words = waiting.get("reason", ""), f"{waiting.get('reason')}: {waiting.get('message', '')}"
        if reason in _IMAGE_REASONS:
            return MachineState.BROKEN, ErrorClass.IMAGE, words
        if reason in _START_REASONS:
            return MachineState.BROKEN, ErrorClass.REQUEST, words
    for condition in status.get("conditions") or ():
        if condition.get("reason") == "Unschedulable":
            return MachineState.PENDING, ErrorClass.CAPACITY, f"Unschedulable: {condition.get('message', '')}"
    return MachineState.PENDING, None, said


def _ended(reason: str) -> ErrorClass | None:
    match reason:
        case "Evicted" | "Preempting" | "NodeLost" | "NodeShutdown" | "Terminated":
            return ErrorClass.CAPACITY
        case "OutOfcpu" | "OutOfmemory" | "OutOfpods":
            return ErrorClass.CAPACITY
        case "DeadlineExceeded":
            return None
        case _:
            return ErrorClass.TRANSIENT


def error_of(status: int, said: Status) -> ErrorClass | None:
    """The class of a refusal; None: something may have been made all the same."""
    if web_answers.is_in_doubt(status):
        return None
    if status == HTTPStatus.FORBIDDEN and "exceeded quota" in said.message:
        return ErrorClass.QUOTA
    if status == HTTPStatus.NOT_FOUND:  # of a name space; a pod that is not there is no error
        return ErrorClass.CONFIG
    return web_answers.error_of(status)
