"""SIF images: recognized by their contents, and unpacked like any other untrusted image."""

import io
import shutil
from pathlib import Path

import pytest

from kettle.execution.containers.images import sif
from kettle.execution.containers.images.archives import unpack_archive
from kettle.execution.containers.policy import ContainerError
from kettle.testing.container_images import BUSYBOX, NO_BUSYBOX, busybox_root, sif_of, squashfs_of

LIMIT = 64 << 20

pytestmark = [
    pytest.mark.skipif(
        not shutil.which("tar2sqfs") or not sif.sif_program(),
        reason="no tar2sqfs and sqfs2tar (Debian package squashfs-tools-ng)",
    ),
    pytest.mark.skipif(not BUSYBOX.exists(), reason=NO_BUSYBOX),
]


def with_runscript(path: Path) -> Path:
    """A root file system whose image says what to run."""
    busybox_root(path)
    (path / ".singularity.d").mkdir()
    (path / ".singularity.d" / "runscript").write_text("#!/bin/sh\necho hello\n")
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return with_runscript(tmp_path / "root")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file system of tests that change nothing in it: to compress one takes a third of a second."""
    return squashfs_of(with_runscript(tmp_path_factory.mktemp("plain") / "root"))


def unpacked(data: bytes, tmp_path: Path, limit: int = LIMIT) -> Path:
    place = tmp_path / "draft" / "image"
    place.mkdir(parents=True)
    config = unpack_archive(io.BytesIO(data), str(place), limit)
    assert ["/.singularity.d/runscript"] == config.entrypoint
    return place


def test_a_sif_image_is_unpacked(plain: bytes, tmp_path: Path) -> None:
    """
    Files, links and modes of its file system; its run script is the entry point; no copy of the file system stays.
    """
    found = unpacked(sif_of(plain), tmp_path)

    assert "busybox\n" == (found / "etc/image").read_text()
    assert "busybox" == str((found / "bin/sh").readlink())
    assert 0o755 == (found / "bin/busybox").stat().st_mode & 0o7777
    assert ["image"] == [path.name for path in found.parent.iterdir()]


def test_rights_beyond_a_job_are_left_out(root: Path, tmp_path: Path) -> None:
    """No file keeps a set-user-id bit."""
    (root / "bin/busybox").chmod(0o4755)
    found = unpacked(sif_of(squashfs_of(root)), tmp_path)
    assert 0o755 == (found / "bin/busybox").stat().st_mode & 0o7777


@pytest.mark.parametrize(
    ("begin", "end", "instead", "words"),
    [
        (100, None, b"", "ends in the middle of its header"),
        (5000, None, b"", "ends in the middle of its header"),
        (-100_000, None, b"", "ends in the middle of its file system"),
        (32200, 36200, b"x" * 4000, "SIF image cannot be read|no image, or a damaged"),
    ],
)
def test_a_damaged_one_is_refused(
    plain: bytes, tmp_path: Path, begin: int, end: int | None, instead: bytes, words: str
) -> None:
    """With a sentence."""
    data = sif_of(plain)
    damaged = data[:begin] + instead + (data[end:] if end is not None else b"")
    with pytest.raises(ContainerError, match=words):
        unpacked(damaged, tmp_path)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"system": 5}, "is encrypted squashfs, and only"),
        ({"system": 2}, "is ext3, and only"),
        ({"architecture": "11"}, "of another architecture"),
    ],
)
def test_what_cannot_be_read_is_refused(
    plain: bytes, tmp_path: Path, fields: dict[str, int], words: str
) -> None:
    """Another file system, or programs of other machines."""
    with pytest.raises(ContainerError, match=words):
        unpacked(sif_of(plain, **fields), tmp_path)  # type: ignore[arg-type]  # of any field


@pytest.mark.slow
def test_one_that_unpacks_to_too_much_is_refused(root: Path, tmp_path: Path) -> None:
    """A small file may hold endless zeros."""
    with (root / "zeros").open("wb") as file:
        file.truncate(2 * LIMIT)
    data = sif_of(squashfs_of(root))
    assert len(data) < LIMIT
    with pytest.raises(ContainerError, match="more than 64 MiB"):
        unpacked(data, tmp_path)


def test_other_files_are_no_sif_images() -> None:
    """Whatever they are called."""
    assert not sif.is_sif(io.BytesIO(b""))
    assert not sif.is_sif(io.BytesIO(b"#!/usr/bin/env run-singularity\n\0SIF_magic\0"))
    assert sif.is_sif(io.BytesIO(b"\0" * 32 + b"SIF_MAGIC\0"))
