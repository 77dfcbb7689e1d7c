"""What `tilt up` would do, by an interpreter of the language of its file."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.scenario.client_environments import python_with

from kettle.testing.commands.running import execute

TOP = Path(__file__).parents[2]


async def calls(tmp_path: Path, *arguments: str) -> list[dict[str, Any]]:
    python = await python_with(["starlark-pyo3==2026.1.3"], "starlark", tmp_path)
    program = str(TOP / "tests/acceptance/evaluate_tiltfile.py")
    done = await execute([python, program, str(TOP / "Tiltfile"), *arguments], tmp_path, dict(os.environ))
    assert 0 == done.status, done
    found: list[dict[str, Any]] = json.loads(done.out)
    return found


def named(made: list[dict[str, Any]], function: str) -> dict[str, dict[str, Any]]:
    return {each["positional"][0]: each["named"] for each in made if each["call"] == function}


@pytest.mark.slow
async def test_with_compose_python_is_taken_into_what_runs(tmp_path: Path) -> None:
    """
    Both images are built of what the Dockerfile copies; a change of Python is copied to where the image has it, and one of what is
    pinned makes a new image.
    """
    made = await calls(tmp_path)
    images = named(made, "docker_build")
    assert {"kettle": "services", "kettle-worker": "worker"} == {
        name: said["target"] for name, said in images.items()
    }
    for said in images.values():
        assert all((TOP / each).exists() for each in said["only"])
        steps = [json.loads(each) for each in said["live_update"]]
        assert ["fall_back_on", "sync", "sync", "sync", "restart_container"] == [step[0] for step in steps]
        for _, here, there in steps[1:4]:
            assert (TOP / here).is_dir()
            assert there == f"/opt/kettle/lib/python3.11/site-packages/{Path(here).name}"
        assert {"DEVELOPMENT": "1"} == said["build_args"]
    (compose,) = [each for each in made if each["call"] == "docker_compose"]
    assert all((TOP / each).exists() for each in compose["positional"][0])
    assert "gateway" in named(made, "dc_resource")


@pytest.mark.slow
async def test_on_kubernetes_the_gateway_is_reached(tmp_path: Path) -> None:
    """
    The overlay for one person is applied, with images as they are shipped, and its gateway is at this machine's port.
    """
    made = await calls(tmp_path, "--kubernetes")
    assert ["infra/kubernetes/overlays/personal"] == [
        each["positional"][0] for each in made if each["call"] == "kustomize"
    ]
    assert ["8443:8443"] == named(made, "k8s_resource")["gateway"]["port_forwards"]
    assert [] == named(made, "docker_build")["kettle"]["live_update"]
