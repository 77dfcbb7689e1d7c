"""What container runtimes are told, word by word."""

import os

import pytest

from kettle.execution.attempts.job_spec import Account
from kettle.execution.containers.job_container import bind
from kettle.execution.containers.policy import ContainerError, ContainerPolicy
from kettle.execution.containers.request import container_request
from kettle.execution.containers.root_directory import Mount
from kettle.execution.containers.runtimes.bubblewrap import arguments
from kettle.execution.containers.runtimes.oci import configuration
from kettle.execution.containers.runtimes.runtime import ContainerSpec
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.processes.launch import Program

BOX = ContainerSpec(
    program=Program(
        path="/bin/sh",
        arguments=["-c", "true"],
        environment={"A": "b c"},
        directory="/srv",
        stdin=os.devnull,
        stdout=os.devnull,
        stderr=os.devnull,
        account=Account(7, 8),
    ),
    sandbox="/dir_1",
    area="/area_dir_1/container",
    skeleton="/area_dir_1/container/root",
    mounts=[
        Mount(source="/usr", destination="/bin"),
        Mount(source="/etc/passwd", destination="/file"),
        Mount(source="/dir_1", destination="/srv", writable=True),
        Mount(source="/dev/nvidia0", destination="/dev/nvidia0", writable=True, device=True),
    ],
    network="none",
)


def test_what_bubblewrap_is_told() -> None:
    """
    No namespace of processes; the root becomes read-only after everything is mounted; no capability is left.
    """
    told = (
        "--unshare-user --unshare-ipc --unshare-uts --new-session --cap-drop ALL --unshare-net"
        " --bind /area_dir_1/container/root / --bind /proc /proc --dev /dev --ro-bind /usr /bin --ro-bind /etc/passwd /file"
        " --bind /dir_1 /srv --dev-bind /dev/nvidia0 /dev/nvidia0 --remount-ro / --chdir /srv"
        " --clearenv --setenv A b c"
    )
    assert told == " ".join(arguments(BOX))


def test_what_runc_is_told() -> None:
    """The job's account without capabilities or new privileges, and no word of control groups."""
    told = configuration(BOX)

    assert {"uid": 7, "gid": 8, "umask": 0o022} == told["process"]["user"]
    assert [[]] * 5 == list(told["process"]["capabilities"].values())
    assert told["process"]["noNewPrivileges"] is True
    assert ["A=b c"] == told["process"]["env"]
    assert {"path": "/area_dir_1/container/root", "readonly": True} == told["root"]
    assert ["mount", "ipc", "network"] == [each["type"] for each in told["linux"]["namespaces"]]
    assert {"cgroupsPath", "resources"}.isdisjoint(told["linux"])
    assert {
        "/bin": ["rbind", "rnosuid", "rnodev", "rro"],
        "/srv": ["bind", "nosuid", "nodev"],
        "/file": ["bind", "nosuid", "nodev", "ro"],
        "/dev/nvidia0": ["bind", "nosuid"],
    } == {each["destination"]: each["options"] for each in told["mounts"] if each["type"] == "bind"}


@pytest.mark.parametrize(
    ("text", "mount"),
    [
        ("/a", Mount(source="/a", destination="/a")),
        ("/a:/b", Mount(source="/a", destination="/b")),
        ("/a:rw", Mount(source="/a", destination="/a", writable=True)),
        ("/a:/b:ro", Mount(source="/a", destination="/b")),
    ],
)
def test_binds_as_an_administrator_writes_them(text: str, mount: Mount) -> None:
    """Read-only unless it says otherwise."""
    assert mount == bind(text)


@pytest.mark.parametrize("text", ["", "a", "/a:b", "/a:/b:/c", "rw"])
def test_a_bind_that_makes_no_sense_is_refused(text: str) -> None:
    """With the text that is wrong."""
    with pytest.raises(ValueError, match="absolute paths"):
        bind(text)


@pytest.mark.parametrize(
    "text", ["/", "/etc:/", "/etc://", "/etc:/proc", "/etc:/proc/x:rw", "/etc:/x/../dev"]
)
def test_a_bind_over_what_a_container_needs_is_refused(text: str) -> None:
    """No job could start."""
    with pytest.raises(ValueError, match="would cover"):
        bind(text)


def policy(**fields: object) -> ContainerPolicy:
    return ContainerPolicy(runtimes=[], images="/i", limit=1, **fields)  # type: ignore[arg-type]  # of any field


def test_a_plain_job_has_no_container_unless_the_administrator_says_so() -> None:
    """Then it sees the machine's own files, and its sandbox where it is."""
    assert container_request(JobAd({"Cmd": "x"}), policy(), "/sandbox") is None
    request = container_request(JobAd({"Cmd": "x"}), policy(always=True), "/sandbox")
    assert request is not None
    assert ("machine", "/sandbox") == (request.form, request.directory)


def test_the_machines_network_policy_wins() -> None:
    """A job that asks for the host's network does not get it where the administrator gives none."""
    job = JobAd({"ContainerImage": "/i", "DockerNetworkType": "host"})
    request = container_request(job, policy(network="none"), "/sandbox")
    assert request is not None
    assert request.network == "none"


@pytest.mark.parametrize("path", ["/", "srv", "/proc", "/dev/shm", "//", "/a/../../b", "/sys/x"])
def test_a_target_directory_that_makes_no_sense_is_refused(path: str) -> None:
    """It may not cover what a container needs."""
    with pytest.raises(ContainerError, match="container_target_dir"):
        container_request(JobAd({"ContainerImage": "/i", "ContainerTargetDir": path}), policy(), "/s")
