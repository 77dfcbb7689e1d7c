"""What these tests ask of startds and of engines."""

import subprocess
from pathlib import Path

import pytest

from kettle.testing.submit_side import script
from kettle_wire.ads import Ad, Scalar

ONE = pytest.mark.parametrize("runtime", ["bubblewrap"], indirect=True)
"""For what is decided before a runtime is: images are the same for all of them."""

PLAIN = pytest.mark.parametrize("runtime", ["bubblewrap", "runc", "crun"], indirect=True)
"""
For what is about images that are unpacked for good, or are directories of the machine, and jobs without an image.
"""
ENGINE = pytest.mark.parametrize("runtime", ["podman", "docker"], indirect=True)
DOCKER = pytest.mark.parametrize("runtime", ["docker"], indirect=True)
ENGINES = ("podman", "docker")


def inside(image: Path | str, text: str, **attributes: Scalar) -> Ad:
    """A line of shell in a container with an image of the worker."""
    wanted: Ad = {"WantContainer": True, "ContainerImage": str(image), "TransferContainer": False}
    return {**script(text), **wanted, **attributes}


def asked(runtime: str, options: dict[str, list[str]], *words: str) -> list[str]:
    """What an engine's command says."""
    command = [runtime, *options[runtime], *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
