"""What docker and podman are told, how images are called, and what is made of their refusals."""

import itertools
import os
import platform
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec
import pytest

from kettle.execution.attempts.job_spec import Account
from kettle.execution.containers.images.archives import ImageConfig
from kettle.execution.containers.images.engine_store import EngineStore, bounded, full_name, refusal
from kettle.execution.containers.images.sources import image_cache
from kettle.execution.containers.policy import ContainerError, ContainerPolicy, FoundRuntime
from kettle.execution.containers.probe import trial_image
from kettle.execution.containers.root_directory import Mount
from kettle.execution.containers.runtimes import engine_client
from kettle.execution.containers.runtimes import holder as holding
from kettle.execution.containers.runtimes.engine import (
    arguments,
    container_name,
    holders_place,
    remove_container,
)
from kettle.execution.containers.runtimes.engine_client import EngineClient, EngineError, SilentError
from kettle.execution.containers.runtimes.namespaces import HolderIdentity, enter, identified
from kettle.execution.containers.runtimes.runtime import ContainerSpec
from kettle.execution.processes.launch import Program
from kettle.execution.processes.side_program import SpawnError
from kettle.testing.patience import PATIENCE_S

BOX = ContainerSpec(
    program=Program(
        path="/bin/sh",
        arguments=["-c", "secret"],
        environment={"TOKEN": "secret"},
        directory="/srv",
        stdin=os.devnull,
        stdout=os.devnull,
        stderr=os.devnull,
        account=Account(7, 8),
    ),
    sandbox="/x/dir_a",
    area="/x/area_dir_a/container",
    skeleton="",
    mounts=[
        Mount(source="/cvmfs", destination="/cvmfs"),
        Mount(source="/x/dir_a", destination="/srv", writable=True),
    ],
    network="none",
    image="sha256:1",
)
DIGEST = "@sha256:" + "0" * 64


@pytest.mark.parametrize("name", ["docker", "podman"])
def test_what_an_engine_is_told(name: str) -> None:
    """
    A container without rights, with the network and the mounts of the job; nothing of the job's program or variables.
    """
    told = arguments(name, BOX, "/.kettle-1", root=True)

    assert {"--cap-drop=ALL", "--security-opt=no-new-privileges", "--read-only", "--user=0:0", "--rm"} < set(
        told
    )
    assert {"--network=none", "--pid=host", "--userns=host", "--pull=never"} < set(told)
    assert [
        "type=bind,source=/x/area_dir_a/container/hold,destination=/.kettle-1,readonly,bind-nonrecursive",
        "type=bind,source=/cvmfs,destination=/cvmfs,readonly,bind-nonrecursive",
        "type=bind,source=/x/dir_a,destination=/srv",
    ] == [word for before, word in itertools.pairwise(told) if before == "--mount"]
    assert ["--entrypoint=/.kettle-1/holder", "sha256:1", "/.kettle-1/line"] == told[-3:]
    assert container_name("/x/dir_a") in told
    assert "secret" not in " ".join(told)


def test_each_container_of_a_sandbox_has_a_name() -> None:
    """A sidecar's is that of the sandbox, with the number of its task: who tidies up knows whose it is."""
    beside = msgspec.structs.replace(BOX, area="/x/area_dir_a/container.2")

    assert f"{container_name('/x/dir_a')}-2" in arguments("docker", beside, "/.kettle-1", root=True)


def test_podman_of_an_ordinary_user_keeps_its_account() -> None:
    """In the container's user namespace the user is who they are outside."""
    assert "--userns=keep-id" in arguments("podman", BOX, "/.kettle-1", root=False)


@pytest.mark.parametrize("path", ["/a,source=/etc,destination=/b", "/a\nb", "-v"])
def test_a_path_is_no_way_to_say_more(path: str) -> None:
    """Options of mounts are separated by commas: a path with one would be an option too."""
    box = msgspec.structs.replace(BOX, mounts=[Mount(source="/x/dir_a", destination=path, writable=True)])
    with pytest.raises(ContainerError, match="do not take there"):
        arguments("docker", box, "/.kettle-1", root=True)


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("ubuntu", "docker.io/library/ubuntu:latest"),
        ("ubuntu:22.04", "docker.io/library/ubuntu:22.04"),
        ("group/name", "docker.io/group/name:latest"),
        ("localhost/x", "localhost/x:latest"),
        ("127.0.0.1:5000/box:1", "127.0.0.1:5000/box:1"),
        ("ghcr.io/a/b:1" + DIGEST, "ghcr.io/a/b" + DIGEST),
    ],
)
def test_the_name_of_an_image_in_full(name: str, full: str) -> None:
    """Without a registry it is Docker's own, without a tag it is the latest, and a digest says all."""
    assert full == full_name(name)


@pytest.mark.parametrize(
    "name",
    ["", "-v", "--privileged", "a b", "A", "a:b:c", "dir:/etc", "oci:x/", "../x", "docker-archive:/etc/x", "https://x/y",
     "a/" + "b" * 600],
)  # fmt: skip
def test_what_is_no_name_of_an_image_is_refused(name: str) -> None:
    """Engines take options and names of files in the same place: with their rights, not the job's."""
    with pytest.raises(ContainerError, match="no name of an image"):
        full_name(name)


@pytest.mark.parametrize(
    ("said", "code", "words"),
    [
        ("manifest for r/a:1 not found: manifest unknown: manifest unknown", 35, "has no image"),
        ("reading manifest 1 in r/a: manifest unknown: manifest unknown", 35, "has no image"),
        (
            "pull access denied for r/a, repository does not exist or may require 'docker login'",
            35,
            "does not give",
        ),
        ('Head "https://r/v2/a/manifests/1": no basic auth credentials', 35, "does not give"),
        ("unauthorized: authentication required", 35, "does not give"),
        ('Get "https://r/v2/": dial tcp 127.0.0.1:1: connect: connection refused', 1021, "cannot be pulled"),
        ("pinging container registry r: Get x: dial tcp: lookup r: no such host", 1021, "cannot be pulled"),
        ("toomanyrequests: You have reached your pull rate limit", 1021, "cannot be pulled"),
        ("received unexpected HTTP status: 500 Internal Server Error", 1021, "cannot be pulled"),
        (
            "Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?",
            1021,
            "cannot be pulled",
        ),
        ("write /x: no space left on device", 1021, "cannot be pulled"),
    ],
)
def test_why_an_image_was_not_pulled(said: str, code: int, words: str) -> None:
    """What would be so everywhere holds the job; what is so here and now has it run again."""
    error = refusal("r/a:1", said)
    assert code == error.code
    assert words in str(error)


@pytest.mark.parametrize(
    "name", ["localhost/kettle-0123", "localhost/kettle-0123:ab", "localhost/kettle-a" + DIGEST]
)
def test_what_another_job_brought_along_has_no_name(name: str) -> None:
    """Imported images are in the engine under names; a job that knows one gets no image by it."""
    with pytest.raises(ContainerError, match="bring it along"):
        full_name(name)


def test_no_link_of_an_image_leads_to_a_holder() -> None:
    """
    Each container has its holder in another place: what a job brings cannot be mounted over one on purpose.
    """
    assert holders_place() != holders_place()


def scripted(tmp_path: Path, text: str, name: str = "docker") -> FoundRuntime:
    """An engine whose command is a script."""
    path = tmp_path / "engine"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return FoundRuntime(name, str(path))


def test_a_command_that_hangs_is_ended_with_what_it_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for an engine longer than they said."""
    monkeypatch.setattr(engine_client, "_LOOKING_S", 0.01)
    found = scripted(
        tmp_path, f"sleep 98764 & echo $! > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; wait"
    )

    def until_started() -> None:
        """Something has been started before the time is over, however long that takes."""
        while not (tmp_path / "pid").exists():
            time.sleep(0.01)

    with pytest.raises(SilentError, match="did not answer within"):
        EngineClient(found).run("x", timeout=0.5, watch=until_started)
    status = Path("/proc", (tmp_path / "pid").read_text().strip(), "status")
    with suppress(FileNotFoundError, ProcessLookupError):  # it has been collected meanwhile
        while "State:\tZ" not in status.read_text():
            time.sleep(0.01)  # it is on its way


@pytest.mark.parametrize(
    ("said", "gone"),
    [
        ("Error response from daemon: No such container: kettle-1", True),
        ('Error: no container with name or ID "kettle-1" found: no such container', True),
        ("Cannot connect to the Docker daemon at unix:///x: dial unix /x: no such file or directory", False),
        ("Error: the file /etc/containers/storage.conf does not exist", False),
    ],
)
def test_what_is_gone_is_said_to_be_gone(tmp_path: Path, said: str, gone: bool) -> None:
    """An engine that cannot be asked has not removed a container, though something is not there."""
    assert gone == remove_container(scripted(tmp_path, f"echo '{said}' >&2; exit 1"), "kettle-1")


def test_an_engine_that_is_silent_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that makes room for images does not wait for it again for each of them."""
    monkeypatch.setattr(engine_client, "ANSWER_S", 0.2)
    asked = list[tuple[str, ...]]()
    ask = EngineClient.run

    def noted(self: EngineClient, *words: str, timeout: float) -> str:
        asked.append(words)
        return ask(self, *words, timeout=timeout)

    monkeypatch.setattr(EngineClient, "run", noted)
    found = scripted(tmp_path, "exec sleep 98763")
    cache = image_cache(ContainerPolicy(runtimes=[found], images=str(tmp_path / "images"), limit=0))
    for key in ("a" * 64, "b" * 64):
        cache.have(key, lambda _root, _limit: ImageConfig(size=1, engine="docker", reference="r")).release()
    asked.clear()
    cache = image_cache(ContainerPolicy(runtimes=[found], images=str(tmp_path / "images"), limit=0))

    cache.shrink()

    assert 1 == len(asked)


IMAGE = '[{"Id": "sha256:1", "Size": 1, "Config": {"Volumes": {"/data": {}}}}]'


def test_docker_gives_no_disk_beside_the_sandbox(tmp_path: Path) -> None:
    """An image with volumes is refused, and why is said: docker would make them writable, on its own disk."""
    found = scripted(tmp_path, f"echo '{IMAGE}'")
    policy = ContainerPolicy(runtimes=[found], images=str(tmp_path / "images"), limit=1 << 20)
    with pytest.raises(ContainerError, match=r"declares volumes \(/data\)") as raised:
        EngineStore(found, policy, "", str(tmp_path)).pulled("a", always=False)
    assert 35 == raised.value.code


def test_each_pull_has_its_logins(tmp_path: Path) -> None:
    """A second pull in an area is no trouble, and no login stays there."""
    plain_image = IMAGE.replace('{"/data": {}}', "null")
    found = scripted(
        tmp_path,
        f"case \"$*\" in *pull*) cat $2/config.json >> {tmp_path}/used;; *info*) echo /;; *) echo '{plain_image}';; esac",
    )
    (tmp_path / "logins").write_text("login ")
    (tmp_path / "area").mkdir()
    policy = ContainerPolicy(
        runtimes=[found],
        images=str(tmp_path / "images"),
        limit=1 << 20,
        auth_file=str(tmp_path / "logins"),
    )
    store = EngineStore(found, policy, str(tmp_path / "sandbox"), str(tmp_path / "area"))
    for _ in range(2):
        store.pulled("a", always=True)
    assert "login login " == (tmp_path / "used").read_text()
    assert [] == list((tmp_path / "area").iterdir())


def test_what_was_pulled_with_a_login_is_not_there_for_others(tmp_path: Path) -> None:
    """
    A job's login is shown by a file that is nowhere; of its repository the registry is asked for each job, until it gives an image to
    one without a login.
    """
    inspected = IMAGE.replace('{"/data": {}}', "null")
    found = scripted(
        tmp_path,
        f"cd {tmp_path}; case $* in "
        "*--config*pull*) readlink $2/config.json >> files; cat $2/config.json >> shown; touch there;; "
        "*pull*) test -e public || { echo unauthorized >&2; exit 1; };; info*) echo /;; "
        f"*) test -e there || {{ echo No such image >&2; exit 1; }}; echo '{inspected}';; esac",
    )
    (tmp_path / "area").mkdir()
    policy = ContainerPolicy(runtimes=[found], images=str(tmp_path / "images"), limit=1 << 20)
    store = EngineStore(found, policy, str(tmp_path / "sandbox"), str(tmp_path / "area"))
    store.pulled("hub.example/a/b:1", always=False, login="bG9naW4=")
    assert '{"auths":{"hub.example":{"auth":"bG9naW4="}}}' == (tmp_path / "shown").read_text()
    (shown,) = (tmp_path / "files").read_text().split()
    assert shown.startswith("/proc/")
    assert [] == list((tmp_path / "area").iterdir())
    for name in ("hub.example/a/b:1", f"hub.example/a/b@sha256:{'0' * 64}"):
        with pytest.raises(ContainerError, match="does not give the image"):
            store.pulled(name, always=False)
    (tmp_path / "public").touch()
    store.pulled("hub.example/a/b:1", always=False)
    (tmp_path / "public").unlink()
    store.pulled("hub.example/a/b:1", always=False)


def test_a_pull_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    """The job runs elsewhere."""
    found = scripted(
        tmp_path,
        'case "$1" in pull) exec sleep 98762;; info) echo /;; *) echo No such image >&2; exit 1;; esac',
    )
    policy = ContainerPolicy(runtimes=[found], images=str(tmp_path / "images"), limit=1 << 20, pull_s=0.5)
    with pytest.raises(ContainerError, match=r"cannot be pulled.*within 0.5 s") as raised:
        EngineStore(found, policy, "", str(tmp_path)).pulled("a", always=False)
    assert 1021 == raised.value.code


@pytest.mark.parametrize("free", [(9 << 30, (1 << 30) - 1), (9 << 30, 7 << 30), ((1 << 30) - 1,)])
def test_a_pull_that_fills_the_disk_is_ended(free: tuple[int, ...]) -> None:
    """There is little left, or more has gone than an image may take; whatever the registry says of it."""
    left = iter(free)
    with pytest.raises(EngineError, match="disk"):
        bounded(lambda: next(left), (1 << 30) - 1)()


def test_a_pull_goes_on_while_there_is_room() -> None:
    """Packed and unpacked together."""
    left = iter((9 << 30, 7 << 30))
    bounded(lambda: next(left), 1 << 30)()


@pytest.mark.parametrize("name", ["probe-abc", "probe-a_b", "probe-ab_", "probe-__", "probe-A___9"])
def test_an_image_of_a_trial_has_a_name_wherever_it_is_made(name: str) -> None:
    """It is well formed, and one that no job may ask for."""
    with pytest.raises(ContainerError, match="what another job has brought along"):
        full_name(trial_image(f"/execute/{name}"))


def test_a_process_that_holds_nothing_is_not_joined(tmp_path: Path) -> None:
    """The pid that an engine named may be another process by now; the job would run there."""
    about = tmp_path.stat()
    with ExitStack() as closing, pytest.raises(ProcessLookupError, match="does not hold"):
        identified(os.getpid(), HolderIdentity((about.st_dev, about.st_ino)), closing)


def test_a_job_does_not_enter_where_we_are(tmp_path: Path) -> None:
    """A process that is in no container is none to be joined, even if it executes the right program."""
    program = msgspec.structs.replace(
        BOX.program,
        path="/bin/touch",
        arguments=[str(tmp_path / "ran")],
        directory="/",
        account=None,
    )
    about = Path("/bin/sleep").resolve().stat()
    with subprocess.Popen(["/bin/sleep", "98761"]) as process, Path(os.devnull).open("r+b") as null:
        while Path(f"/proc/{process.pid}/exe").resolve().name == Path(sys.executable).resolve().name:
            pass
        program = msgspec.structs.replace(program, streams=(null.fileno(),) * 3)
        birth = enter(process.pid, None, program, HolderIdentity((about.st_dev, about.st_ino)))
        with pytest.raises(SpawnError, match="No such process"):
            birth.finish()
        os.waitpid(birth.pid, 0)
        process.kill()
    assert not (tmp_path / "ran").exists()


HELD = holding.holder(platform.machine())


@pytest.mark.skipif(HELD is None, reason="there is no holder for this kind of machine")
def test_a_holder_stays_until_its_line_is_cut(tmp_path: Path) -> None:
    """
    It blocks every signal that can be blocked, and ends when nobody has the other end of its pipe any more.
    """
    assert HELD is not None
    program, line = tmp_path / "holder", tmp_path / "line"
    program.write_bytes(HELD)
    program.chmod(0o755)
    os.mkfifo(line)
    with subprocess.Popen([program, line]) as process:
        fd = os.open(line, os.O_WRONLY)  # returns when the holder has opened it
        for _ in range(3):
            os.write(fd, b"x")
        status = Path(f"/proc/{process.pid}/status")
        while "SigBlk:\tfffffffffffbfeff" not in status.read_text():
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        os.close(fd)
        assert 0 == process.wait(PATIENCE_S)


@pytest.mark.skipif(
    platform.machine() != "x86_64" or not shutil.which("as") or not shutil.which("objcopy"),
    reason="no assembler for this machine's holder (Debian package binutils)",
)
def test_the_holder_is_what_its_listing_says(tmp_path: Path) -> None:
    """The machine code in the source is that of the listing in its documentation."""
    assert holding.__doc__ is not None
    listing = textwrap.dedent(holding.__doc__.partition("assembles it again:")[2])
    (tmp_path / "code.s").write_text(".intel_syntax noprefix\n" + listing)
    subprocess.run(["as", "code.s", "-o", "code.o"], cwd=tmp_path, check=True)
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", "code.o", "code"], cwd=tmp_path, check=True)

    assert HELD is not None
    assert HELD.endswith((tmp_path / "code").read_bytes())
    assert 120 + (tmp_path / "code").stat().st_size == len(HELD)
