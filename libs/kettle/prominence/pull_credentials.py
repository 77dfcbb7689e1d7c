"""
Logins of image registries in documents: taken out where a document comes in, and named by what they are stored under from then on.

So nothing that keeps a document (the ad of a job, a file of a DAG job, what is copied from) has a secret.  Pure.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from kettle.jobs.image_registries import divided
from kettle_wire.prominence.job import Credential, Job, Task

STORED: Final = "***"
"""In the place of a secret: it has been stored."""
_DIGITS: Final = 32
_DOCKER: Final = "docker://"
_IMAGE_FILES: Final = (".sif", ".simg", ".tar", ".tgz", ".tar.gz")


class Logins(msgspec.Struct, frozen=True):
    """What a document says of logins."""

    given: Mapping[str, str]
    """By handle the texts that are to be stored."""
    named: Mapping[str, str]
    """By handle those that were stored before: user and registry, for people."""

    def __repr__(self) -> str:
        """Without the secrets."""
        return f"Logins({[*self.given]}, {[*self.named]})"


def is_of_registry(image: str) -> bool:
    """
    Whether an image has a name in a registry, which is told from that of an uploaded file by the suffix of that.
    """
    if "://" in image:
        return image.startswith(_DOCKER)
    return not image.startswith("/") and not image.endswith(_IMAGE_FILES)


def handle(task: Task) -> str:
    """
    What the login of a task is stored under: a newer one of the same user takes its place; empty: it has none.
    """
    if (credential := task.image_pull_credential) is None:
        return ""
    whose = f"{_registry(task)}\0{credential.username}"
    return hashlib.sha256(whose.encode()).hexdigest()[:_DIGITS]


def taken_out(jobs: Sequence[Job]) -> tuple[list[Job], Logins]:
    """The jobs without secrets of registries, and these."""
    given: dict[str, str] = {}
    named: dict[str, str] = {}
    for task in (task for job in jobs for task in job.tasks):
        if (credential := task.image_pull_credential) is None:
            continue
        if credential.token == STORED:
            named[handle(task)] = f"{credential.username} at {_registry(task)}"
        else:
            given[handle(task)] = _text(credential)
    return [without_secrets(job) for job in jobs], Logins(given, named)


def without_secrets(job: Job) -> Job:
    """The job with `***` in the place of each secret of a registry."""
    return replace(job, tasks=[_without_secret(task) for task in job.tasks])


def _without_secret(task: Task) -> Task:
    credential = task.image_pull_credential
    if credential is None:
        return task
    return replace(task, image_pull_credential=replace(credential, token=STORED))


def _text(credential: Credential) -> str:
    """As it is stored, and as files of logins have it."""
    return base64.b64encode(f"{credential.username}:{credential.token}".encode()).decode()


def _registry(task: Task) -> str:
    return divided(task.image.removeprefix(_DOCKER))[0]
