"""A person's job in a container, in a whole pool."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from kettle.client import select
from kettle.testing.container_images import busybox_root, missing, tar_of
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.files import webdav
from kettle.testing.shared_pool import SharedPool
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.events import JobCheckpointed, JobCompleted, JobHeld, JobVacated
from kettle_wire.jobs import JobId

from .evidence import Evidence
from .published_by_containers import page_of
from .test_checkpoints import COUNTER
from .test_tasks import ends, run, shell
from .waiting import happened

WORKING = [
    name
    for name, program in (("runc", "runc"), ("bubblewrap", "bwrap"))
    if not missing(program, name) and (name == "bubblewrap" or os.geteuid() == 0)
]

pytestmark = [
    pytest.mark.skipif(
        not WORKING,
        reason="needs bubblewrap or, as root, runc, and busybox (Debian packages of these names; busybox-static)",
    ),
]


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    wrapped = {"container_runtimes": WORKING, "singularity_image_expr": "TARGET.SingularityImage"}
    return {"settings": {"startd": wrapped, "gateway": {"rest": True}}}


async def test_output_of_a_container_comes_home(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    `universe = container` with an archive beside the description: two jobs see the image, and their files come back.
    """
    (tmp_path / "busybox.tar").write_bytes(tar_of(busybox_root(tmp_path / "root")))
    (tmp_path / "words").write_text("b\na\n")
    (tmp_path / "x509up").write_text("certificate\n")
    (tmp_path / "job.sub").write_text(
        "universe = container\ncontainer_image = busybox.tar\nx509userproxy = x509up\n"
        "executable = /bin/sh\ntransfer_executable = false\n"
        "arguments = \"-c 'cat /etc/image words; pwd > made.$(Process); cat $X509_USER_PROXY; echo $X509_USER_PROXY'\"\n"
        "transfer_input_files = words\noutput = out.$(Process)\nqueue 2\n"
    )
    submitted = await pool.client.submit((tmp_path / "job.sub").read_text(), cwd=tmp_path)
    async with asyncio.timeout(PATIENCE_S):
        progress = await pool.client.wait(select(submitted.cluster))

    assert [0, 0] == [state.exit_code for state in progress.jobs.values()]
    for proc in range(2):
        assert (tmp_path / f"out.{proc}").read_text() == "busybox\nb\na\ncertificate\n/srv/x509up\n"
        assert (tmp_path / f"made.{proc}").read_text() == "/srv\n"
    assert not (tmp_path / "busybox.tar.0").exists()


async def test_a_service_in_a_network_of_its_own_is_reached(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    What listens in the container alone, where no other port of the machine is, is read through the gateway.
    """
    (tmp_path / "busybox.tar").write_bytes(tar_of(busybox_root(tmp_path / "root")))
    assert "from inside\n" == await page_of(pool, "container_image = busybox.tar", "none", tmp_path)


async def test_what_is_no_image_is_held_with_the_reason(pool: ThrowawayPool, tmp_path: Path) -> None:
    """Hold code 35, and the hold reason names the image."""
    (tmp_path / "broken.tar").write_text("this is no archive\n")
    submitted = await pool.client.submit(
        "container_image = broken.tar\nexecutable = /bin/true\ntransfer_executable = false\nqueue\n",
        cwd=tmp_path,
    )
    async with asyncio.timeout(PATIENCE_S):
        while True:
            (ad,) = await pool.client.jobs(select(submitted.cluster))
            if ad["JobStatus"] == 5:
                break
            await asyncio.sleep(0.05)

    assert ad["HoldReasonCode"] == 35
    assert "broken.tar" in str(ad["HoldReason"])
    await pool.client.remove(select(submitted.cluster))


@pytest.mark.parametrize(
    "command",
    [
        "container_image = {}\ntransfer_container = false\n",
        '+SingularityImage = "{}"\nrequirements = HasSingularity\n',
    ],
)
async def test_a_directory_tree_of_the_machine_is_an_image(
    pool: ThrowawayPool, evidence: Evidence, tmp_path: Path, command: str
) -> None:
    """
    As images below `/cvmfs` are, also by `+SingularityImage`; one that is not there holds the job, with code and text, and once.
    """
    tree = busybox_root(evidence.directory / "tree")
    jobs = list[JobId]()
    for place, name in ((tree, "there"), (evidence.directory / "none", "missing")):
        description = (
            f"{command.format(place)}executable = /bin/cat\ntransfer_executable = false\n"
            f"arguments = /etc/image\noutput = {name}\nqueue\n"
        )
        jobs.append(JobId((await pool.client.submit(description, cwd=tmp_path)).cluster, 0))
    await happened(pool.client, jobs[0], JobCompleted)
    held = await happened(pool.client, jobs[1], JobHeld)
    await pool.client.remove(select(jobs[1].cluster))

    assert "busybox\n" == (tmp_path / "there").read_text()
    assert 35 == held.code
    assert f"{evidence.directory}/none cannot be read: No such file or directory" in held.reason


async def test_a_kind_of_image_that_no_machine_runs_waits_and_says_so(
    pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    A name in a registry takes an engine that no machine of this pool has: the job is accepted and never matched.
    """
    submitted = await pool.client.submit(
        "container_image = docker://ubuntu\nexecutable = /bin/true\ntransfer_executable = false\nqueue\n",
        cwd=tmp_path,
    )
    (ad,) = await pool.client.jobs(select(submitted.cluster))

    assert "TARGET.HasDockerURL" in str(ad["Requirements"])
    assert ad["JobStatus"] == 1
    await pool.client.remove(select(submitted.cluster))


async def test_each_task_has_a_container_of_its_own(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    Tasks with an image see it, share HOME with a task without one and with a sidecar in a container, and have an input directory at
    its mount point; the image is prepared once.
    """
    (tmp_path / "busybox.tar").write_bytes(tar_of(busybox_root(tmp_path / "root")))
    (tmp_path / "source" / "data").mkdir(parents=True)
    (tmp_path / "source" / "data" / "words").write_text("b\na\n")
    image = {"image": "busybox.tar"}
    until = "until test -e beside; do sleep 0.02; done; "
    with webdav(tmp_path) as server:
        server.write("data.tar", tar_of(tmp_path / "source"))
        url = f"http://127.0.0.1:{server.port}/data.tar"
        tasks = {
            "artifacts": [{"url": url, "mountpoint": "data:/data"}],
            "tasks": [
                shell("cat /etc/image > beside; while :; do sleep 0.05; done", type="sidecar", **image),
                shell(f"{until}cat beside /data/words > made; echo $HOME $TMP; pwd", **image),
                shell("cat ../made; exit 1", workdir="data", retries=1, **image),
            ],
        }
        completed, steps = await run(pool, tmp_path, tasks, "transfer_input_files = busybox.tar\n")

    words = "busybox\nb\na\n"
    assert f"/home/user /tmp\n/home/user\n{words}{words}" == (tmp_path / "out").read_text()
    assert 1 == completed.exit.code
    assert ("sidecar", 0, 0, "done") == ends(steps)[-1][:4]
    assert {"cached"} == {step.outcome for step in steps if step.kind == "pull"} - {"done"}
    assert 1 >= [step.outcome for step in steps if step.kind == "pull"].count("done")


async def test_a_task_is_an_application_of_its_image(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    Of an image with applications: what one runs itself, and a program of another with its variables; one that is not there fails.
    """
    root = busybox_root(tmp_path / "root")
    for name in ("one", "other"):
        place = root / "scif" / "apps" / name
        for directory in ("bin", "scif/env"):
            (place / directory).mkdir(parents=True)
        (place / "bin" / "greet").write_text('#!/bin/sh\necho "$GREETING from $SCIF_APPNAME: $*"\n')
        (place / "scif" / "runscript").write_text("#!/bin/sh\ngreet by itself\n")
        (place / "scif" / "env" / "90-environment.sh").write_text(f"GREETING={name}\n")
        for program in ("bin/greet", "scif/runscript"):
            (place / program).chmod(0o755)
    (tmp_path / "box.tar").write_bytes(tar_of(root))
    image = {"image": "box.tar"}
    tasks = {
        "tasks": [
            {"app": "one", **image},
            {"app": "other", "cmd": ["greet", "it's $me"], **image},
            {"app": "none", **image},
        ]
    }
    completed, steps = await run(pool, tmp_path, tasks, "transfer_input_files = box.tar\n")

    assert "one from one: by itself\nother from other: it's $me\n" == (tmp_path / "out").read_text()
    assert "the image has no application none" in (tmp_path / "err").read_text()
    assert (1, ("task", 2, 0, "failed", 127)) == (completed.exit.code, ends(steps)[-1])


@pytest.mark.skipif("runc" not in WORKING, reason="needs runc and busybox-static (Debian packages), and root")
async def test_a_job_in_a_container_goes_on_from_its_checkpoint(
    evidence: Evidence, tmp_path: Path, shared_pool: SharedPool
) -> None:
    """
    Each life has a new container on the sandbox as it was left; after a drain it is one on another sandbox, and no step
    before the checkpoint is repeated.
    """
    work = evidence.work
    (work / "busybox.tar").write_bytes(tar_of(busybox_root(tmp_path / "root")))
    (work / "job.sh").write_text(COUNTER.replace("cp state/large large\n", "cat /etc/image\n"))
    (work / "job.sh").chmod(0o755)
    description = (
        "universe = container\ncontainer_image = busybox.tar\nexecutable = job.sh\n"
        f"arguments = {evidence.directory} 5\noutput = out\nerror = err\n"
        "checkpoint_exit_code = 85\ntransfer_checkpoint_files = state\ntransfer_output_files = result\nqueue\n"
    )
    settings: dict[str, dict[str, Any]] = {
        "startd": {
            "container_runtimes": ["runc"],
            "container_bind": [f"{evidence.directory}:rw"],
            "checkpoint_pause": 0.01,
        },
    }
    async with shared_pool.lent(cpus=2, settings=settings) as running:
        submitted = await running.client.submit(description, cwd=work)
        job = JobId(submitted.cluster, 0)
        await happened(running.client, job, JobCheckpointed)
        async with asyncio.timeout(PATIENCE_S):
            while (evidence.directory / "steps").read_text() != "1\n2\n3\n":
                await asyncio.sleep(0.05)
        machine = str((await running.client.ads("Machine", constraint="PartitionableSlot"))[0]["Machine"])
        status, _, said = await running.kettle("drain", "--quick", "--resume-on-completion", machine)
        assert 0 == status, said
        await happened(running.client, job, JobVacated)
        (evidence.directory / "go").touch()
        completed = await happened(running.client, job, JobCompleted)

    assert (2, 0) == (completed.attempt, completed.exit.code)
    assert "1\n2\n3\n3\n4\n5\n" == (evidence.directory / "steps").read_text()
    assert "step 1\nstep 2\nstep 3\nstep 4\nstep 5\nbusybox\n" == (work / "out").read_text()
    assert "5\n" == (work / "result").read_text()
