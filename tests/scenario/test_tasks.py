"""Several tasks in one job: in their order, in one sandbox, with retries, sidecars and containers of their own."""

import json
from pathlib import Path
from typing import Any

import msgspec

from kettle.client import select
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.events import JobCompleted
from kettle_wire.jobs import JobId
from kettle_wire.tasks import STEPS_ATTRIBUTE, Step

from .waiting import happened

WITHIN_S = 60.0


def description(tasks: dict[str, Any], more: str = "") -> str:
    """A submit description of one job with these tasks."""
    return (
        f"executable = tasks\ntransfer_executable = false\noutput = out\nerror = err\nlog = log\n{more}"
        f"+KettleTasks = {json.dumps(json.dumps(tasks))}\nqueue\n"
    )


def shell(script: str, **more: Any) -> dict[str, Any]:
    """A task that is a line of the shell."""
    return {"cmd": ["/bin/sh", "-c", script], **more}


async def run(
    pool: ThrowawayPool, place: Path, tasks: dict[str, Any], more: str = ""
) -> tuple[JobCompleted, list[Step]]:
    """Run them to their end: what was recorded of that, and the steps in the job's ad."""
    submitted = await pool.client.submit(description(tasks, more), cwd=place)
    job = JobId(submitted.cluster, 0)
    completed = await happened(pool.client, job, JobCompleted)
    (ad,) = await pool.client.history(select(submitted.cluster))
    return completed, msgspec.json.decode(str(ad[STEPS_ATTRIBUTE]), type=list[Step])


def ends(steps: list[Step]) -> list[tuple[str, int | None, int, str, int | None]]:
    """How each step ended that is one of a task."""
    return [
        (step.kind, step.task, step.retry, step.outcome, step.code)
        for step in steps
        if step.kind in {"task", "sidecar"} and step.outcome != "begun"
    ]


async def test_tasks_share_a_sandbox_and_a_failing_one_is_tried_again(
    pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    The second task fails once and is tried again in its place, beside a sidecar that never ends by itself; what each says comes in
    their order, and each step is in the job's ad and its log.
    """
    tasks = {
        "tasks": [
            shell("trap 'exit 0' TERM; while :; do echo up > beside; sleep 0.05; done", type="sidecar"),
            shell("until test -e beside; do sleep 0.02; done; echo one > made; echo $PROMINENCE_TASK_NUM"),
            shell(
                "cat made; test -e again || { touch again; exit 3; }; echo $WHO",
                env={"WHO": "two's"},
                retries=2,
            ),
            shell("echo three", stdout="own"),
        ],
    }
    completed, steps = await run(pool, tmp_path, tasks)

    assert completed.exit.code == 0
    assert (tmp_path / "out").read_text() == "1\none\none\ntwo's\nthree\n"
    assert (tmp_path / "own").read_text() == "three\n"
    assert ends(steps) == [
        ("task", 1, 0, "done", 0),
        ("task", 2, 0, "failed", 3),
        ("task", 2, 1, "done", 0),
        ("task", 3, 0, "done", 0),
        ("sidecar", 0, 0, "done", 0),
    ]
    assert "task 2 exited with code 3" in (tmp_path / "log").read_text()
