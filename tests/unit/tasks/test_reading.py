"""What a job may say of its tasks."""

import json
from typing import Any

import pytest

from kettle.tasks.reading import TasksError, artifact_name, fetched_images, read_tasks, retries_of
from kettle_wire.ads import Expr


def text(**more: Any) -> str:
    """A list of one plain task, with `more`."""
    return json.dumps({"tasks": [{"cmd": ["true"]}], **more})


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (Expr("{1}"), "no expression"),
        ("[", "cannot be read"),
        ("\ud800", "cannot be read"),
        ('{"tasks":[]}', "$.tasks"),
        (text(task=1), "unknown field `task`"),
        (text(tasks=[{"cmd": "true"}]), "$.tasks[0].cmd"),
        (text(tasks=[{"cmd": ["a"]}, {}]), "task 1 has neither cmd nor image"),
        (text(tasks=[{"cmd": [""]}]), "empty program"),
        (text(tasks=[{"image": "i", "type": "openmpi"}]), "task 0 is of type openmpi and has no cmd"),
        (text(tasks=[{"cmd": ["a"], "ranks": 2}]), "task 0 has ranks"),
        (text(tasks=[{"cmd": ["a"], "type": "sidecar"}]), "all tasks are sidecars"),
        (text(tasks=[{"cmd": ["a"], "type": "sidecar", "retries": 1}]), "not tried again"),
        (text(tasks=[{"cmd": ["a"], "stdout": "../x"}]), "no name of a file"),
        (text(tasks=[{"cmd": ["a"], "stdout": "_condor_stdout"}]), "no name of a file"),
        (text(tasks=[{"cmd": ["a"], "env": {"A=B": ""}}]), "$.tasks[0].env"),
        (text(tasks=[{"image": "docker://x", "sha256": "0" * 64}]), "sha256"),
        (text(tasks=[{"image": "https://h/"}]), "cannot be fetched"),
        (text(tasks=[{"image": "http://h/x", "sha256": "0" * 64}, {"image": "http://h/x"}]), "two digests"),
        (text(tasks=[{"cmd": ["a"]}] * 10, retries=100), "3030 steps"),
        (text(artifacts=[{"url": "x"}]), "no URL"),
        (text(artifacts=[{"url": "http://h/"}]), "give it a name"),
        (text(artifacts=[{"url": "http://h/x", "name": "../x"}]), "none of a file"),
        (text(artifacts=[{"url": "http://h/x"}, {"url": "http://g/x"}]), "two artifacts"),
        (text(artifacts=[{"url": "http://h/x", "mountpoint": "x:/x"}]), "names no image"),
        (text(outputs=[{"name": "/etc/passwd"}]), "no path in the sandbox"),
        (text(outputs=[{"name": "x", "url": "y"}]), "no URL"),
    ],
)
def test_what_cannot_be_run_is_refused_with_the_place(value: object, why: str) -> None:
    """In a sentence that names the task or the field."""
    with pytest.raises(TasksError) as refused:
        read_tasks(value)
    assert why in str(refused.value)


@pytest.mark.parametrize("place", ["x", "x:rel", "x:/", "x:/proc/1", "a/b:/x", "../x:/x", "x:/../dev"])
def test_mount_points_are_names_of_the_sandbox_at_plain_paths(place: str) -> None:
    """Nothing above, nothing that the kernel has there, no deeper name, which may lead through a link."""
    with pytest.raises(TasksError, match="mount point"):
        read_tasks(text(tasks=[{"image": "i"}], artifacts=[{"url": "http://h/x", "mountpoint": place}]))


def test_what_is_said_of_all_tasks_counts_where_one_says_nothing() -> None:
    """
    Its own retries win, sidecars have none; an image of a URL is fetched once, an artifact is called as its URL ends.
    """
    url = "https://h/x.sif?token=y"
    tasks = [{"image": url}, {"cmd": ["a"], "retries": 0}, {"image": url, "type": "sidecar"}]
    listed = read_tasks(text(tasks=tasks, retries=3, artifacts=[{"url": "http://h/d/a.tgz?b=c"}]))

    assert [3, 0, 0] == [retries_of(listed, task) for task in listed.tasks]
    assert {url: ""} == fetched_images(listed)
    assert "a.tgz" == artifact_name(listed.artifacts[0])
