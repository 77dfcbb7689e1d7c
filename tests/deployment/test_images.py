"""The images, built and run."""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from kettle import VERSION

from .local_images import LocalImages

CLOSED = [
    "--read-only",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    "--network=none",
    "--tmpfs=/tmp",
]
LARGEST = {"kettle": 400 << 20, "kettle-worker": 450 << 20}
"""Bytes with the base of the test, uncompressed."""

pytestmark = pytest.mark.slow


def described(images: LocalImages, name: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = json.loads(images.docker("image", "inspect", name))
    return found[0]


@pytest.mark.parametrize("name", LARGEST)
def test_an_image_says_what_it_is(images: LocalImages, name: str) -> None:
    """Version, user, signal, health, the form of its entry point, and a size within bounds."""
    found = described(images, name)
    config = found["Config"]
    assert VERSION == config["Labels"]["org.opencontainers.image.version"]
    assert ("9618:9618", "SIGTERM") == (config["User"], config["StopSignal"])
    assert ["CMD", "kettle", "health"] == config["Healthcheck"]["Test"]
    assert "kettle" == config["Entrypoint"][0]
    assert found["Size"] < LARGEST[name]


@pytest.mark.parametrize("name", LARGEST)
def test_nobody_can_change_it_and_nothing_in_it_builds(images: LocalImages, name: str) -> None:
    """No file of ours can be written by others than root, and there is neither pip nor a compiler."""
    script = "find /opt/kettle -perm /022 ! -type l; ls -d /opt/kettle/lib/python3*/site-packages/pip; which pip pip3 gcc cc; id -u"
    said = images.docker("run", "--rm", *CLOSED, "--entrypoint=sh", name, "-c", script + " 2>/dev/null")
    assert "9618\n" == said


@pytest.mark.parametrize(
    "role", ["schedd", "shadow", "collector", "negotiator", "accounting", "gateway", "iam", "dagman"]
)
def test_roles_begin_as_any_account(images: LocalImages, role: str) -> None:
    """
    With a root that cannot be written, no capability and a number that nobody has heard of, a service starts, and says in a sentence
    that the bus is not there.
    """
    words = [
        "--user=54321:54321",
        "--tmpfs=/var/lib/kettle:uid=54321,mode=0700",
        "--env=KETTLE_DATABASE_URL=postgresql://nobody@127.0.0.1/none",
    ]
    script = f"timeout 20 kettle run {role} 2>&1; test $? -ne 78"
    said = images.docker("run", "--rm", *CLOSED, *words, "--entrypoint=sh", "kettle", "-c", script)
    assert "Connection refused" in said, said
    assert "Permission denied" not in said
    assert "Read-only file system" not in said


def content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member) if member.isfile() else None
    return b"" if file is None else file.read()


def test_two_builds_are_the_same(images: LocalImages, tmp_path: Path) -> None:
    """Every file of ours has the same content, mode, owner and time when nothing is taken from a cache."""
    images.build("services", "kettle:again", "--no-cache")
    contents: list[dict[str, tuple[int, float, str, bytes]]] = []
    for name in ("kettle:latest", "kettle:again"):
        container = images.docker("create", name).strip()
        archive = tmp_path / f"{name}.tar"
        images.docker("cp", f"{container}:/opt/kettle", str(tmp_path / name))
        images.docker("rm", container)
        with tarfile.open(archive, "w") as tar:
            tar.add(tmp_path / name, "kettle")
        with tarfile.open(archive) as tar:
            contents.append(
                {each.name: (each.mode, each.mtime, each.linkname, content(tar, each)) for each in tar}
            )
    first, second = contents
    assert first.keys() == second.keys()
    assert [] == [name for name in first if first[name] != second[name]]


def test_what_is_in_it_is_what_is_pinned(images: LocalImages, top: Path) -> None:
    """Each distribution in the image is one of the lock, in that version, and Kettle."""
    script = "import importlib.metadata as m; print('\\n'.join(f'{d.name.lower()}=={d.version}' for d in m.distributions()))"
    said = images.docker(
        "run", "--rm", *CLOSED, "--entrypoint=/opt/kettle/bin/python", "kettle", "-c", script
    )
    pinned = (top / "requirements/services.txt").read_text().replace("_", "-")
    there = {line.replace("_", "-") for line in said.split()} - {f"kettle=={VERSION}"}
    assert len(there) > 30
    assert [] == [each for each in sorted(there) if f"{each} " not in pinned]
