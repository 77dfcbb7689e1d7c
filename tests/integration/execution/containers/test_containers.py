"""Jobs in containers: what they see, and that everything which holds for a plain job holds for them."""

import os
import re
import signal
from pathlib import Path

import pytest

from kettle.testing.container_images import busybox_root, docker_archive, oci_layout, tar_of
from kettle.testing.submit_side import SubmitSide, inline, output, script
from kettle.testing.worker import WorkerPool
from kettle_wire.ads import Expr, Scalar
from kettle_wire.attempts import Ending
from kettle_wire.commands.startd import DEACTIVATE, Deactivate, Deactivation
from kettle_wire.worker_reports import Continued, Started, Suspended

from .wanted import ONE, PLAIN, inside

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_job_sees_its_image_and_its_sandbox(submitter: SubmitSide, image: Path) -> None:
    """
    The root is the image, read-only; the sandbox is /srv, writable, and where the job begins; /tmp is the job's own.
    """
    text = (
        "cat /etc/image; pwd; echo $_CONDOR_SCRATCH_DIR $HOME; touch /bin/x /y 2>/dev/null || echo closed; "
        "echo t > /tmp/t; ls /tmp; cat input; echo result > made; ls -d /home /root 2>/dev/null"
    )
    exited = await submitter.run(inside(image, text), inputs=[inline("input", b"given\n")])

    assert exited.result.exit is not None
    lines = (output(exited) or b"").decode().split("\n")
    assert ["busybox", "/srv", "/srv /srv", "closed", "t", "given", ""] == lines
    assert b"result\n" == output(exited, "made")


@pytest.mark.parametrize(
    ("text", "code", "number"),
    [
        ("exit 0", 0, None),
        ("exit 1", 1, None),
        ("exit 137", 137, None),
        ("kill -9 $$", None, 9),
        ("kill -15 $$", None, 15),
        ("sleep 0.3; exit 3", 3, None),
        ("sleep 0.3; kill -11 $$", None, 11),
    ],
)
async def test_the_end_of_a_job_is_told_as_it_was(
    submitter: SubmitSide, image: Path, text: str, code: int | None, number: int | None
) -> None:
    """Exit code or signal, as outside of a container, however short the job is."""
    exited = await submitter.run(inside(image, text))

    assert exited.result.exit is not None, exited
    assert (code, number) == (exited.result.exit.code, exited.result.exit.signal)


async def test_a_job_that_ignores_the_soft_signal_is_killed(submitter: SubmitSide, image: Path) -> None:
    """After the time that the job itself asked for comes SIGKILL: its machine would give it an hour."""
    text = "trap '' TERM; while :; do sleep 0.05; done"
    activation = await submitter.start(inside(image, text, KillSigTimeout=0.3, Patient=True))
    await submitter.hear(activation, lambda report: isinstance(report.body, Started))

    order = Deactivation(
        key=activation.key, job=activation.job, attempt=1, ending=Ending(code=1004, reason="vacated")
    )
    await submitter.shadow.call(DEACTIVATE, submitter.startd, Deactivate(attempts=[order]))

    failed = await submitter.final(activation)
    assert failed.result.exit is None
    assert failed.result.ending is not None
    assert 1004 == failed.result.ending.code


async def test_a_job_stands_still_and_goes_on(
    submitter: SubmitSide, standing: WorkerPool, image: Path
) -> None:
    """
    It does so when its machine's policy says so: its processes are found, no matter what made the container.
    """
    text = "while [ ! -e go ]; do sleep 0.05; done; exit 5"
    activation = await submitter.start(inside(image, text, Pause=True))
    report = await submitter.hear(activation, lambda report: isinstance(report.body, Suspended))
    assert isinstance(report.body, Suspended)
    assert report.body.processes >= 1
    (sandbox,) = standing.execute.glob("dir_*")
    (sandbox / "go").touch()
    await submitter.hear(activation, lambda report: isinstance(report.body, Continued))

    exited = await submitter.final(activation)
    assert exited.result.exit is not None
    assert 5 == exited.result.exit.code


async def test_a_job_that_runs_too_long_is_held(submitter: SubmitSide, image: Path) -> None:
    """Its own wall-clock limit counts inside, too: hold code 47."""
    failed = await submitter.run(inside(image, "sleep 60", AllowedExecuteDuration=1))

    assert failed.result.exit is None

    assert failed.result.ending is not None
    assert (True, 47) == (failed.result.ending.holds, failed.result.ending.code)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a control group that limits memory")
async def test_a_memory_hog_is_killed_and_held(submitter: SubmitSide, image: Path) -> None:
    """
    Hold 34 with subcode 102: the container is in its starter's control group, and its limit is the slot's.
    """
    hog = "x=0123456789abcdef; while :; do x=$x$x; done"

    failed = await submitter.run(inside(image, hog, RequestMemory=32))

    assert failed.result.exit is None

    assert failed.result.ending is not None
    assert (True, 34, 102) == (
        failed.result.ending.holds,
        failed.result.ending.code,
        failed.result.ending.subcode,
    )


async def test_usage_is_the_jobs_own(submitter: SubmitSide, image: Path) -> None:
    """
    Peak memory and CPU time are those of the job; what the runtime used to set the container up is not among them.
    """
    busy = (
        "dd if=/dev/zero of=/dev/null bs=30000000 count=1; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"
    )
    idle = await submitter.run(inside(image, "sleep 0.4"))
    heavy = await submitter.run(inside(image, busy))

    assert idle.result.exit is not None
    assert heavy.result.exit is not None
    assert idle.result.usage.memory_kib < 8 * 1024
    assert idle.result.usage.user_cpu + idle.result.usage.system_cpu < 0.1
    assert 28 * 1024 < heavy.result.usage.memory_kib < 64 * 1024
    assert heavy.result.usage.user_cpu > 0.05


async def test_no_process_outlives_its_job(
    pool: WorkerPool, image: Path, options: dict[str, list[str]]
) -> None:
    """
    An orphan in a session of its own is gone when the report comes, and so is everything that the container was made of.
    """
    before = mounts_of(pool, options)
    async with pool.startd() as startd:
        await pool.submitter.run(inside(image, f"(setsid sleep {pool.nap} >/dev/null 2>&1 &); sleep 0.2"))

        assert [] == pool.sleeping()
        assert [] == list(pool.execute.glob("dir_*"))
        await startd.drain()
    assert before == mounts_of(pool, options)
    assert [] == [path for path in pool.sandboxes if path.name != "images"]


def mounts_of(pool: WorkerPool, options: dict[str, list[str]]) -> list[str]:
    """
    What is mounted by this pool or by the engine of these tests; other tests mount things at the same time.
    """
    said = " ".join(word for words in options.values() for word in words)
    ours = [str(pool.home), *re.findall(r"kettle-engine-[^/\s]+", said)]
    assert len(ours) > len(options), f"no directory of an engine in {said}"
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    daemons = "/exec/netns/default "  # dockerd keeps the host's network there from its first container on
    return [line for line in lines if any(place in line for place in ours) and daemons not in line]


async def test_after_a_killed_starter_nothing_is_left(
    submitter: SubmitSide, standing: WorkerPool, image: Path
) -> None:
    """The startd ends what runs in the container and removes what there was of it."""
    activation = await submitter.start(inside(image, f"exec sleep {standing.nap}"))
    await submitter.hear(activation, lambda report: isinstance(report.body, Started))
    job = await standing.sleeper()
    starter = int(Path(f"/proc/{job}/stat").read_text().rpartition(")")[2].split()[1])

    os.kill(starter, signal.SIGKILL)

    failed = await submitter.final(activation)
    assert failed.result.exit is None
    assert failed.result.ending is not None
    assert (False, 1007) == (failed.result.ending.holds, failed.result.ending.code)
    assert [] == standing.sleeping()
    assert [] == list(standing.execute.glob("dir_*"))


async def test_a_killed_starter_without_a_startd_is_cleaned_up_by_the_next(
    pool: WorkerPool, image: Path
) -> None:
    """A startd that starts finds the container of a starter that died meanwhile."""
    async with pool.startd():
        activation = await pool.submitter.start(inside(image, f"exec sleep {pool.nap}"))
        await pool.submitter.hear(activation, lambda report: isinstance(report.body, Started))
        job = await pool.sleeper()
        starter = int(Path(f"/proc/{job}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(starter, signal.SIGKILL)

    async with pool.startd() as startd:
        failed = await pool.submitter.final(activation)
        assert failed.result.exit is None
        assert failed.result.ending is not None
        assert [] == pool.sleeping()
        assert [] == list(pool.execute.glob("dir_*"))
        await startd.drain()


@ONE
async def test_an_archive_comes_along_as_an_input_file(submitter: SubmitSide, directory: Path) -> None:
    """It is fetched and unpacked once for two jobs, and no copy of it lies in the sandbox."""
    data = tar_of(busybox_root(directory / "root"), mode="w:gz")
    file = submitter.file("box.tar.gz", data)
    ad = inside(
        "sub/box.tar.gz",
        "cat /etc/image; ls sub box* 2>/dev/null",
        TransferContainer=True,
        ContainerImageSource="cedar",
    )
    claim = await submitter.claim()

    for _ in range(2):
        exited = await submitter.final(await submitter.start(ad, claim=claim, inputs=[file]))
        assert b"busybox\n" == output(exited)

    assert {"box.tar.gz"} == set(submitter.fetched)
    assert len(submitter.fetched) == -(-len(data) // (512 * 1024))


@ONE
@pytest.mark.parametrize("kind", ["layout", "layout.tar", "saved.tar"])
async def test_images_of_layers(submitter: SubmitSide, directory: Path, kind: str) -> None:
    """
    OCI layouts, as directory and as archive, and what docker saves: layers in order, variables and entry point.
    """
    base = tar_of(busybox_root(directory / "base"))
    (directory / "second" / "etc").mkdir(parents=True)
    (directory / "second" / "etc" / "image").write_text("layered\n")
    (directory / "second" / "etc" / ".wh.gone").touch()
    layers = (base, tar_of(directory / "second"))
    config = {"Env": ["COLOR=red", "PATH=/usr/bin"], "Entrypoint": ["sh", "-c"], "Cmd": ["echo none"]}
    made = (docker_archive if kind == "saved.tar" else oci_layout)(directory / "made", *layers, config=config)
    if kind.endswith(".tar"):
        path = directory / kind
        path.write_bytes(tar_of(made))
    else:
        path = made
    wanted = inside(path, "true", Cmd="", Arguments="'cat /etc/image; echo $COLOR ${PATH%%:*}'")

    exited = await submitter.run(wanted)

    assert b"layered\nred /usr/bin\n" == output(exited)


@ONE
@pytest.mark.parametrize(("asked", "said"), [(Expr("1 - 1"), b""), (1, b"GPU-a\n")])
async def test_device_files_are_for_those_who_have_a_gpu(
    submitter: SubmitSide, standing: WorkerPool, image: Path, asked: Scalar, said: bytes
) -> None:
    """Not for those whose request, whatever it looks like, is none."""
    text = f"test -e {standing.home}/node && echo $_CONDOR_AssignedGPUs; true"
    wants = inside(image, text, RequestGPUs=asked)

    exited = await submitter.final(
        await submitter.start(wants, claim=await submitter.claim(RequestGPUs=asked))
    )

    assert exited.result.exit is not None, exited
    assert said == (output(exited) or b"")


async def test_a_job_chooses_where_its_sandbox_is_and_its_network(submitter: SubmitSide, image: Path) -> None:
    """
    A target directory that the image lacks is made, inside a directory of the image as well; network none is none.
    """
    ad = inside(
        image,
        "pwd; ls -d /etc/image /etc/work; tail -n +3 /proc/net/dev; touch /opt/own/x && echo writable",
        ContainerTargetDir="/etc/work",
        MountUnderScratch="/opt/own",
        DockerNetworkType="none",
    )
    exited = await submitter.run(ad)

    lines = (output(exited) or b"").decode().splitlines()
    assert ["/etc/work", "/etc/image", "/etc/work"] == lines[:3]
    assert ["lo"] == [line.split(":")[0].strip() for line in lines[3:-1]]
    assert "writable" == lines[-1]


async def test_a_job_without_a_network_talks_with_its_starter(submitter: SubmitSide, image: Path) -> None:
    """
    Given a container with network none, when a program in it calls the chirp proxy where `.chirp.config` says, then it is
    answered: it is on the loopback device of the container.
    """
    text = (
        "set -- $(cat .chirp.config); mkfifo p; nc $1 $2 < p > said & exec 3> p; "
        "printf 'cookie %s\\nset_job_attr_delayed ChirpStage 5\\n' $3 >&3; "
        "until [ $(wc -l < said) = 2 ]; do :; done; cat said; tail -n +3 /proc/net/dev | cut -d: -f1"
    )
    exited = await submitter.run(inside(image, text, DockerNetworkType="none", TransferOutput=""))

    assert exited.result.exit is not None, exited
    assert ["0", "0", "lo"] == (output(exited) or b"").decode().split()
    assert {"ChirpStage": "5"} == exited.told


@ONE
@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ({"ContainerImage": "/no/such/image"}, 35, "No such file"),
        ({"ContainerImage": "{image}/etc/image"}, 35, "no image"),
        ({"ContainerImage": "{image}/usr/empty"}, 35, "is empty"),
        (
            {"ContainerImage": "docker://ubuntu", "ContainerImageSource": "docker"},
            35,
            "takes podman or docker",
        ),
        ({"ContainerImage": "x.sif"}, 35, "No such file"),
        ({"ContainerTargetDir": "/proc/x"}, 35, "absolute path inside the container"),
        ({"DockerNetworkType": "bridge"}, 35, "host and none"),
        ({"Cmd": "/bin/absent"}, 6, "/bin/absent in the container: No such file"),
        ({"Cmd": "/etc/image"}, 6, "Permission denied"),
        ({"Cmd": "", "Arguments": ""}, 6, "no entry point"),
    ],
)
async def test_what_cannot_be_had_holds_the_job(
    submitter: SubmitSide, image: Path, change: dict[str, str], code: int, words: str
) -> None:
    """With the code of the table and a sentence; nothing is left in the cache."""
    (image / "usr" / "empty").mkdir()
    wanted = {name: text.replace("{image}", str(image)) for name, text in change.items()}

    failed = await submitter.run(inside(image, "true", **wanted))

    assert failed.result.exit is None, failed

    assert failed.result.ending is not None
    assert (True, code) == (failed.result.ending.holds, failed.result.ending.code), failed
    assert words in failed.result.ending.reason


@PLAIN
@pytest.mark.skipif(os.geteuid() != 0, reason="needs jobs that run as another account")
async def test_an_unpacked_image_is_for_those_who_have_it(
    submitter: SubmitSide, standing: WorkerPool, directory: Path
) -> None:
    """
    Another job that knows where it is unpacked does not get there, and the one whose image it is runs in it.
    """
    others = set(_unpacked(standing))
    archive = directory / "mine.tar"
    archive.write_bytes(tar_of(busybox_root(directory / "root")))
    assert b"busybox\n" == output(await submitter.run(inside(archive, "cat /etc/image")))
    (unpacked,) = set(_unpacked(standing)) - others

    exited = await submitter.run(script(f"cat {unpacked} || echo closed"))

    assert b"closed\n" == output(exited)


def _unpacked(pool: WorkerPool) -> list[Path]:
    return list((pool.execute / "images").glob("*/root/etc/image"))


@ONE
@pytest.mark.skipif(os.geteuid() != 0, reason="needs jobs that run as another account")
async def test_an_image_is_no_way_around_file_modes(submitter: SubmitSide, directory: Path) -> None:
    """What the job's account cannot read on the machine it does not get as its root either."""
    secret = directory / "secret.tar"
    secret.write_bytes(tar_of(busybox_root(directory / "root")))
    secret.chmod(0o600)

    failed = await submitter.run(inside(secret, "true"))

    assert failed.result.exit is None

    assert failed.result.ending is not None
    assert (True, 35, 13) == (
        failed.result.ending.holds,
        failed.result.ending.code,
        failed.result.ending.subcode,
    )


@ONE
async def test_files_come_and_go_by_url(submitter: SubmitSide, image: Path, directory: Path) -> None:
    """Plugins run outside of the container, on the sandbox that is inside."""
    place = directory / "place"
    place.mkdir()
    place.chmod(0o777)
    (place / "given").write_text("by url\n")
    ad = inside(
        image,
        "cat given; echo result > made",
        TransferInput=f"file://{place}/given",
        OutputDestination=f"file://{place}/results",
    )
    exited = await submitter.run(ad)

    assert b"by url\n" == output(exited)
    assert "result\n" == (place / "results/made").read_text()


@ONE
async def test_no_container_where_the_files_are(submitter: SubmitSide, image: Path) -> None:
    """A shared file system is not in the container: code 14, with a sentence."""
    failed = await submitter.run(inside(image, "true", ShouldTransferFiles="NO", Iwd="/tmp"))

    assert failed.result.exit is None

    assert failed.result.ending is not None
    assert (True, 14) == (failed.result.ending.holds, failed.result.ending.code)
    assert "does not see" in failed.result.ending.reason
