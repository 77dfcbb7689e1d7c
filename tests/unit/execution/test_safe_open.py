"""Opening files of a sandbox while its job lives."""

import os
from pathlib import Path

import pytest

from kettle.execution.sandbox.safe_open import open_beneath


@pytest.fixture
def sandbox(tmp_path: Path) -> Path:
    inside = tmp_path / "sandbox"
    (inside / "deep/er").mkdir(parents=True)
    (inside / "deep/er/file").write_text("inside")
    (tmp_path / "secret").write_text("outside")
    (inside / "link").symlink_to(tmp_path / "secret")
    (inside / "own").symlink_to("deep/er/file")
    (inside / "way").symlink_to(tmp_path)
    os.mkfifo(inside / "pipe")
    return inside


def test_a_file_is_opened_by_its_path(sandbox: Path) -> None:
    """Wherever it is below the sandbox."""
    fd = open_beneath(str(sandbox), "deep/er/file")
    try:
        assert b"inside" == os.read(fd, 100)
    finally:
        os.close(fd)


@pytest.mark.parametrize(
    "name",
    [
        "link",
        "own",
        "way/secret",
        "../secret",
        "deep/../../secret",
        "/etc/passwd",
        "deep//er/file",
        "./link",
        "",
    ],
)
def test_no_way_leads_out(sandbox: Path, name: str) -> None:
    """Neither by the name nor by a link, and links inside are not followed either; no descriptor is left."""
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - counts descriptors
    with pytest.raises(PermissionError):
        open_beneath(str(sandbox), name)
    assert before == len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - as above


@pytest.mark.parametrize("name", ["pipe", "deep", "absent", "deep/er/file/x"])
def test_only_files_are_opened(sandbox: Path, name: str) -> None:
    """A pipe without a writer does not make us wait, and is not touched."""
    with pytest.raises(OSError):
        open_beneath(str(sandbox), name)
