"""Workflows of PROMINENCE whose jobs wait for each other, on a running pool."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kettle.testing.container_images import busybox_root, tar_of
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool

from .test_rest_v1 import SERVICES, V1, client, issuer, pytestmark
from .test_rest_v1 import configuration as without_dagman
from .test_rest_v1_jobs import RESOURCES, needs_containers, sent

__all__ = ["issuer", "pytestmark", "without_dagman"]


@pytest.fixture(scope="module")
def configuration(without_dagman: dict[str, Any]) -> dict[str, Any]:
    """The process of a DAG job is this Python, which an account of a slot may not reach."""
    settings = without_dagman["settings"]
    more = {
        "master": {"daemon_list": [*SERVICES, "dagman"]},
        "startd": {**settings["startd"], "job_account": "own"},
    }
    return {**without_dagman, "settings": {**settings, **more}}


def own_token(pool: ThrowawayPool) -> str:
    """With which the account comes that the pool runs as."""
    return (pool.home / "gateway" / "token").read_text().strip()


async def ended(ada: V1, workflow: int) -> dict[str, Any]:
    """A workflow as it is described when it has ended."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            (found,) = await ada.ask("GET", f"/workflows/{workflow}")
            if found["status"] not in {"idle", "running"}:
                return dict(found)
            await asyncio.sleep(0.2)


@needs_containers
async def test_jobs_run_when_those_before_them_have_ended(pool: ThrowawayPool, tmp_path: Path) -> None:
    """A factory waits for a job, and another job for all of its instances."""
    async with client(pool, own_token(pool)) as ada:
        image = await sent(ada, "busybox.tar", tar_of(busybox_root(tmp_path / "root")))

        def job(name: str, script: str) -> dict[str, Any]:
            task = {"image": image, "runtime": "udocker", "cmd": f"/bin/sh -c '{script}'"}
            return {"name": name, "resources": RESOURCES, "tasks": [task]}

        jobs = [job("first", "cat words"), job("sweep", "echo $x"), job("last", "echo last")]
        jobs[0]["inputs"] = [{"filename": "words", "content": "YgphCg=="}]
        workflow = {
            "name": "w",
            "jobs": jobs,
            "dependencies": {"first": ["sweep"], "sweep": ["last"]},
            "factories": [{
                "name": "f",
                "type": "parameterSweep",
                "jobs": ["sweep"],
                "parameters": [{"name": "x", "start": 0, "end": 1, "step": 0.5}],
            }],
        }  # fmt: skip
        number = (await ada.ask("POST", "/workflows", 201, json=workflow))["id"]
        found = await ended(ada, number)
        assert "completed" == found["status"], found
        assert {"total": 5, "done": 5, "failed": 0, "queued": 0, "waiting": 0} == found["progress"]
        assert "b\na\n" == await ada.ask("GET", f"/workflows/{number}/first/stdout")
        assert "0.5\n" == await ada.ask("GET", f"/workflows/{number}/sweep/1/stdout")
        members = await ada.ask("GET", f"/jobs?workflow=true&id={number}&all=true")
        assert ["w/first", *(f"w/sweep/{n}" for n in range(3)), "w/last"] == [
            each["name"] for each in members
        ]
