"""
The root of a container: a place for every mount, and nothing that the image's own directories would hide.
"""

import os
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from kettle.execution.attempts.job_spec import Account
from kettle.execution.containers.policy import ContainerError
from kettle.execution.containers.root_directory import Mount, make_mount_points, resolve

JOB = Account(1_999_999_001, 1_999_999_001)


@pytest.fixture
def open_path() -> Generator[Path]:
    """
    A directory that other accounts can pass through; the temporary directories of pytest are closed to them.
    """
    with tempfile.TemporaryDirectory(prefix="kettle-") as name:
        path = Path(name)
        path.chmod(0o711)
        yield path


def test_resolving_ends(tmp_path: Path) -> None:
    """Links in a circle are an error, and no path leads out of the root."""
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "up").symlink_to("../../../etc")
    assert "etc/x" == resolve(str(tmp_path), "up/x")
    assert "x" == resolve(str(tmp_path), "../../x")
    with pytest.raises(OSError, match="symbolic links"):
        resolve(str(tmp_path), "a")


def test_a_skeleton_has_a_place_for_every_mount(tmp_path: Path) -> None:
    """
    The image's directories are mounted whole, but for one that lacks a mount point; the image stays as it is.
    """
    image, skeleton, source = tmp_path / "image", tmp_path / "root", tmp_path / "source"
    for path in (image / "bin", image / "opt" / "app", image / "proc", source):
        path.mkdir(parents=True)
    (image / "lib").symlink_to("bin")
    (image / "opt" / "file").touch()
    before = sorted(image.rglob("*"))
    wanted = [
        Mount(source=str(source), destination="/srv", writable=True),
        Mount(source=str(source), destination="/opt/work"),
        Mount(source=str(source), destination="/bin/absent", optional=True),
    ]

    mounts = make_mount_points(str(image), str(skeleton), wanted)

    assert before == sorted(image.rglob("*"))
    assert ["/bin", "/opt/app", "/opt/file", "/srv", "/opt/work"] == [mount.destination for mount in mounts]
    assert "bin" == str((skeleton / "lib").readlink())
    assert all((skeleton / mount.destination.lstrip("/")).exists() for mount in mounts)


def test_a_mount_goes_where_the_images_links_lead(tmp_path: Path) -> None:
    """/tmp that is a link to /var/tmp is mounted there."""
    image = tmp_path / "image"
    (image / "var" / "tmp").mkdir(parents=True)
    (image / "tmp").symlink_to("/var/tmp")

    mounts = make_mount_points(
        str(image),
        str(tmp_path / "root"),
        [Mount(source=str(tmp_path), destination="/tmp/x")],
    )

    assert "/var/tmp/x" == mounts[-1].destination


def put(image: Path, skeleton: Path, destination: str, reader: Account | None = None) -> list[str]:
    """Destinations of all mounts when a directory is mounted at `destination`."""
    wanted = [Mount(source=str(image), destination=destination)]
    return [mount.destination for mount in make_mount_points(str(image), str(skeleton), wanted, reader)]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another account than the job's")
@pytest.mark.parametrize("mode", [0o700, 0o744, 0o711])
def test_a_closed_directory_of_the_machine_is_not_taken_apart(open_path: Path, mode: int) -> None:
    """
    Its entries, each mounted by itself, would be open to a job that its modes keep out: hold code 35, EACCES.
    """
    home = open_path / "image" / "home" / "alice"
    (home / "papers").mkdir(parents=True)
    home.chmod(mode)

    with pytest.raises(ContainerError, match="Permission denied") as caught:
        put(open_path / "image", open_path / "root", "/home/alice/x", JOB)
    assert (35, 13) == (caught.value.code, caught.value.subcode)
    assert not (open_path / "root").exists()
    assert ["/home", "/srv"] == put(open_path / "image", open_path / "root", "/srv", JOB)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another account than the job's")
def test_the_skeleton_stays_ours(open_path: Path) -> None:
    """The job's rights count for what is read, not for what is made."""
    (open_path / "image" / "opt" / "app").mkdir(parents=True)
    (open_path / "image" / "lib").symlink_to("opt")

    assert ["/opt/app", "/opt/x"] == put(open_path / "image", open_path / "root", "/opt/x", JOB)
    assert {0} == {path.lstat().st_uid for path in (open_path / "root").rglob("*")}


@pytest.mark.parametrize(
    ("link", "target", "destination", "words"),
    [
        ("srv", "/", "/srv", "link to /"),
        ("srv", "/proc", "/srv", "link to /proc"),
        ("srv", "../dev/shm", "/srv", "link to /dev/shm"),
        ("way", "/sys", "/way/x", "link to /sys/x"),
        ("a", "b", "/file/x", "Not a directory"),
        ("a", "b", "/file", "in the way of a directory"),
        ("a", "a", "/a/x", "Too many levels"),
    ],
)
def test_what_is_in_the_way_of_a_mount_is_the_images_fault(
    open_path: Path, link: str, target: str, destination: str, words: str
) -> None:
    """Hold code 35, not another try on another machine."""
    image = open_path / "image"
    image.mkdir()
    (image / link).symlink_to(target)
    (image / "file").touch()

    with pytest.raises(ContainerError, match=words) as caught:
        put(image, open_path / "root", destination)
    assert 35 == caught.value.code


def test_parents_are_mounted_first_wherever_links_lead(open_path: Path) -> None:
    """/tmp is a link to /var/tmp here: what is mounted at /var must not cover it."""
    image = open_path / "image"
    (image / "var" / "tmp").mkdir(parents=True)
    (image / "tmp").symlink_to("var/tmp")
    wanted = [Mount(source=str(image), destination=name) for name in ("/tmp", "/var")]

    mounts = make_mount_points(str(image), str(open_path / "root"), wanted)

    assert ["/var", "/var/tmp"] == [mount.destination for mount in mounts]


def test_no_link_of_an_image_is_followed_on_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A directory of an image that belongs to somebody is exchanged for a link, after it was seen where the mount point would be: what is
    made has our rights, and is made nowhere else.
    """
    image, victim, scandir = tmp_path / "image", tmp_path / "victim", os.scandir
    for path in (image / "opt", victim):
        path.mkdir(parents=True)

    def exchanging(path: str) -> object:
        if not (image / "opt").is_symlink():
            (image / "opt").rmdir()
            (image / "opt").symlink_to(victim)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", exchanging)

    with pytest.raises(NotADirectoryError):
        put(image, tmp_path / "root", "/opt/work/here")

    assert [] == list(victim.iterdir())
