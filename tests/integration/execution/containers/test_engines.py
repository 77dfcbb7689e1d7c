"""What docker and podman have of jobs, and what jobs have of them."""

import os
import signal
import tarfile
from functools import partial
from pathlib import Path

import pytest

from kettle.execution.containers.runtimes.engine import label as engine_label
from kettle.testing.container_images import busybox_root, docker_archive, tar_of
from kettle.testing.processes import end_parent
from kettle.testing.submit_side import SubmitSide, output
from kettle.testing.worker import WorkerPool
from kettle_wire.worker_reports import Started

from .wanted import DOCKER, ENGINE, asked, inside

pytestmark = pytest.mark.asyncio(loop_scope="module")


@ENGINE
async def test_nothing_of_a_container_stays_with_its_engine(
    pool: WorkerPool, image: Path, options: dict[str, list[str]], runtime: str
) -> None:
    """
    Neither after a job, nor after its starter was killed; nor, when the next startd has started, what none knows of.
    """
    known = partial(asked, runtime, options, "ps", "--all", "--quiet")
    async with pool.startd() as startd:
        await pool.submitter.run(inside(image, "true"))
        assert [] == known()
        activation = await pool.submitter.start(inside(image, f"exec sleep {pool.nap}"))
        await pool.submitter.hear(activation, lambda report: isinstance(report.body, Started))
        assert 1 == len(known())
        job = await pool.sleeper()
        end_parent(job)
        await pool.submitter.final(activation)
        assert [] == known()
        await startd.drain()
    kept, *_ = asked(runtime, options, "image", "ls", "--format", "{{.Repository}}:{{.Tag}}")
    mark = engine_label(str(pool.execute))
    asked(runtime, options, "create", "--name=kettle-lost", f"--label={mark}", "--network=none", kept, "sh")

    async with pool.startd() as startd:
        await pool.until(lambda: not known())
        await startd.drain()


@ENGINE
async def test_a_job_is_no_way_to_more_than_its_container(
    submitter: SubmitSide, image: Path, directory: Path
) -> None:
    """
    No capability, no rights to be gained, no word with the holder, none of the machine's files and devices.
    """
    secret = directory / "secret"
    secret.write_text("secret")
    text = (
        "grep -E '^(Cap(Eff|Bnd|Prm)|NoNewPrivs|Uid)' /proc/self/status; ls /.kettle-*; "
        "h=$(grep -l holder /proc/[0-9]*/cmdline 2>/dev/null | head -n 1); h=${h#/proc/}; h=${h%/cmdline}; "
        "echo held ${h:+yes}; kill -9 $h && echo killed; ls /proc/$h/root/ && echo seen; "
        f"mount -t tmpfs none /tmp && echo mounted; cat {secret}; mknod /tmp/vda b 254 0 && echo made; "
        "ls /dev/vda /dev/mem /var/run/docker.sock; true"
    )
    exited = await submitter.run(inside(image, text))

    said = (output(exited) or b"").decode()
    assert [f"Cap{kind}:\t{0:016x}" for kind in ("Prm", "Eff", "Bnd")] == [
        line for line in said.splitlines() if line.startswith("Cap")
    ]
    assert "NoNewPrivs:\t1" in said
    assert "held yes" in said
    for gained in ("killed", "seen", "mounted", "secret", "made", "/dev/", "sock"):
        assert gained not in said


@ENGINE
@pytest.mark.skipif(os.geteuid() != 0, reason="needs an engine in whose images devices work")
async def test_no_device_of_an_image_works(
    submitter: SubmitSide, image: Path, options: dict[str, list[str]], runtime: str
) -> None:
    """
    A disk that an image has under a name of its own cannot be opened, and no place makes a difference; the devices of
    every container can.
    """
    node = tarfile.TarInfo("disk")
    node.type, node.mode, node.devmajor, node.devminor = tarfile.CHRTYPE, 0o666, 1, 5
    layer = image.with_name("node.tar")
    layer.write_bytes(image.read_bytes())
    with tarfile.open(layer, "a") as tar:
        for node.name in ("disk", "dev/disk", "var/disk"):
            tar.addfile(node)
    name = f"localhost/with-devices-{runtime}:1"
    asked(runtime, options, "import", str(layer), name)
    look = (
        "ls -l /disk | cut -c 1-10; for f in /disk /var/disk /dev/disk; do head -c 1 $f >/dev/null 2>&1 && echo opened $f; "
        "done; for f in null zero full random urandom; do head -c 1 /dev/$f >/dev/null || echo closed $f; done; "
        "echo x > /dev/null && test -w /srv && echo works; ls -d /.kettle-*/hold* || true"
    )

    exited = await submitter.run(inside(f"docker://{name}", look, ContainerImageSource="docker"))

    assert b"crw-rw-rw-\nworks\n" == output(exited)


@DOCKER
async def test_an_engine_that_hangs_costs_no_result(
    standing: WorkerPool, submitter: SubmitSide, image: Path, options: dict[str, list[str]]
) -> None:
    """The report of a job is on the disk before its container is removed."""
    daemon = int(Path(options["docker"][1].removeprefix("unix://")).with_name("pid").read_text())
    text = "echo result; while ! test -e go; do sleep 0.1; done"
    activation = await submitter.start(inside(image, text))
    await submitter.hear(activation, lambda report: isinstance(report.body, Started))
    (sandbox,) = standing.execute.glob("dir_*")
    os.kill(daemon, signal.SIGSTOP)
    try:
        (sandbox / "go").touch()
        await standing.until(lambda: list(standing.reports.glob("*")))
        await standing.until(lambda: standing.processes(f"{options['docker'][1]}\0rm\0--force\0--volumes"))
    finally:
        os.kill(daemon, signal.SIGCONT)

    assert b"result\n" == output(await submitter.final(activation))


@ENGINE
async def test_volumes_of_an_image_are_no_disk(
    submitter: SubmitSide, image: Path, options: dict[str, list[str]], runtime: str
) -> None:
    """Docker's are refused, podman makes none: what they name is read-only like the rest."""
    name = f"localhost/with-volumes-{runtime}:1"
    asked(runtime, options, "import", "--change", "VOLUME /etc", str(image), name)

    ended = await submitter.run(
        inside(f"docker://{name}", "touch /etc/new || echo closed", ContainerImageSource="docker")
    )

    if runtime == "docker":
        assert ended.result.exit is None
        assert ended.result.ending is not None
        assert (True, 35) == (ended.result.ending.holds, ended.result.ending.code)
        assert "volumes (/etc)" in ended.result.ending.reason
    else:
        assert b"closed\n" == output(ended)


@ENGINE
@pytest.mark.parametrize(
    "change",
    [
        {"ContainerTargetDir": "/work,source=/etc,destination=/x"},
        {"MountUnderScratch": "/x\ny"},
        {"ContainerImage": "docker://dir:/etc", "ContainerImageSource": "docker"},
        {"ContainerImage": "docker://--privileged", "ContainerImageSource": "docker"},
    ],
)
async def test_what_would_tell_an_engine_more_is_refused(
    submitter: SubmitSide, image: Path, change: dict[str, str]
) -> None:
    """Names and paths of a job are not options of the engine's command."""
    failed = await submitter.run(inside(image, "true", **change))

    assert failed.result.exit is None

    assert failed.result.ending is not None
    assert (True, 35) == (failed.result.ending.holds, failed.result.ending.code), failed.result.ending.reason


@ENGINE
async def test_an_archive_does_not_choose_its_name(
    submitter: SubmitSide, directory: Path, options: dict[str, list[str]], runtime: str
) -> None:
    """What it says of itself is not what other jobs get when they ask for an image of that name."""
    made = docker_archive(directory / "made", tar_of(busybox_root(directory / "root")))
    manifest = (made / "manifest.json").read_text()
    (made / "manifest.json").write_text(manifest.replace("a:1", "docker.io/library/ubuntu:latest"))
    archive = directory / "saved.tar"
    archive.write_bytes(tar_of(made))

    exited = await submitter.run(inside(archive, "cat /etc/image"))

    assert b"busybox\n" == output(exited)
    assert "ubuntu" not in " ".join(asked(runtime, options, "image", "ls", "--format", "{{.Repository}}"))
