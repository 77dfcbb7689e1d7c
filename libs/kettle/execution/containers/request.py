"""What a job says about its container, in HTCondor's attributes."""

import posixpath
from typing import Final, Literal

import msgspec

from kettle.execution.containers.policy import ContainerError, ContainerPolicy, Network
from kettle.execution.job_environment.job_ad import JobAd
from kettle_wire.codes import HoldCode

TARGET: Final = "/srv"
"""Where the sandbox is in a container, unless the job says otherwise."""
_SCRATCH: Final = ("/tmp", "/var/tmp")  # noqa: S108 - names inside the container
_RESERVED: Final = frozenset({"/", "/proc", "/dev", "/sys"})

Form = Literal["docker", "sif", "files", "machine"]


class ContainerRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The container that a job wants."""

    image: str
    form: Form
    """A name in a registry; a SIF file; an archive or a directory; the machine's own files."""
    local: bool
    """The image is on the machine, not among the job's input files."""
    engine: bool = False
    """Docker's universe: only an engine will do."""
    directory: str = TARGET
    scratch: tuple[str, ...] = _SCRATCH
    """Directories of the container that are private, empty and writable."""
    network: Network = "host"
    under_entrypoint: bool = False
    """The image's entry point runs the job's program, as its argument; else that is run by itself."""
    pull_always: bool = False
    """The registry is asked for the image also when there is one of this name on the machine."""


def container_request(job: JobAd, policy: ContainerPolicy | None, sandbox: str) -> ContainerRequest | None:
    """
    The container of a job; None: it wants none, and the machine does not insist.

    Raises:
        ContainerError: what it asks for makes no sense.
    """
    image = job.text("ContainerImage") or job.text("DockerImage") or ""
    engine = job.flag("WantDocker", default=False)
    if not image and not engine and not job.flag("WantContainer", default=False):
        if policy is None or not policy.always:
            return None
        return ContainerRequest(
            image="/", form="machine", local=True, directory=sandbox, network=_network(job, policy)
        )
    if not image:
        raise ContainerError("the job wants a container and names no image: write container_image = ...")
    return ContainerRequest(
        image=image.removeprefix("docker://"),
        form=_form(job, image),
        local=posixpath.isabs(image) and job.text("ContainerImageSource") in {None, "local"},
        engine=engine,
        directory=_directory(job.text("ContainerTargetDir") or TARGET, "container_target_dir"),
        scratch=_scratch(job),
        network=_reachable(job, _network(job, policy)),
        under_entrypoint=not job.flag("DockerOverrideEntrypoint", default=True),
        pull_always=(job.text("DockerPullPolicy") or "").lower() == "always",
    )


def _form(job: JobAd, image: str) -> Form:
    if image.startswith("docker://") or job.text("ContainerImage") is None:
        return "docker"
    return "sif" if image.endswith(".sif") else "files"


def _network(job: JobAd, policy: ContainerPolicy | None) -> Network:
    asked = (job.text("DockerNetworkType") or "").lower()
    if asked not in {"", "host", "none"}:
        raise ContainerError(
            f"docker_network_type = {asked} is not to be had on this machine: host and none are",
            code=HoldCode.InvalidDockerImage,
        )
    return "none" if asked == "none" or (policy is not None and policy.network == "none") else "host"


def _reachable(job: JobAd, network: Network) -> Network:
    """Services of a job are reached under the machine's own address, or not at all."""
    if network == "none" and job.given("ContainerServiceNames"):
        raise ContainerError(
            "the job has services (container_service_names), and this machine's containers have no network",
            code=HoldCode.InvalidDockerImage,
        )
    return network


def _scratch(job: JobAd) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*_SCRATCH, *scratch_directories(job))))


def scratch_directories(job: JobAd) -> list[str]:
    """
    The directories beside `/tmp` that the job wants for itself.

    Raises:
        ContainerError: one of them cannot be had anywhere.
    """
    return [_directory(item, "mount_under_scratch") for item in job.items("MountUnderScratch") or []]


def _directory(path: str, command: str) -> str:
    """An absolute, plain path that may be mounted over."""
    plain = posixpath.normpath(path)
    plain = "/" + plain.lstrip("/") if posixpath.isabs(path) else plain
    reserved = plain in _RESERVED or plain.startswith(("/proc/", "/dev/", "/sys/"))
    if not posixpath.isabs(path) or reserved or "\0" in path or ".." in path.split("/"):
        raise ContainerError(
            f"{command} must be an absolute path inside the container, other than /, /proc, /dev and /sys, not {path!r}"
        )
    return plain
