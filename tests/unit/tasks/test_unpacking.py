"""Archives that jobs have fetched."""

import bz2
import gzip
import io
import stat
import tarfile
import zipfile
from pathlib import Path
from typing import Literal

import pytest

from kettle.tasks.unpacking import UnpackingError, is_packed, pack, unpack

ROOM = 1 << 20


def tar(path: Path, *members: tarfile.TarInfo, mode: Literal["w", "w:gz", "w:bz2"] = "w") -> Path:
    """An archive of these members, of which files are as long as they say."""
    with tarfile.TarFile.open(path, mode) as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(b"x" * member.size) if member.isreg() else None)
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, *, link: str = "", size: int = 1) -> tarfile.TarInfo:
    """One member."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, 0o4755
    info.size = size if kind == tarfile.REGTYPE else 0
    return info


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


@pytest.mark.parametrize(
    ("name", "mode"), [("a.tar", "w"), ("a.tgz", "w:gz"), ("a.tar.gz", "w:gz"), ("a.tar.bz2", "w:bz2")]
)
def test_a_tar_is_unpacked_and_removed(place: Path, name: str, mode: Literal["w", "w:gz", "w:bz2"]) -> None:
    """Files, directories and links within it come out; nobody gets rights by their modes."""
    members = [
        member("./"), member("d", tarfile.DIRTYPE), member("d/f"), member("d/e/g"), member("l", tarfile.SYMTYPE, link="d/f"),
        member("d/up", tarfile.SYMTYPE, link="../l"), member("h", tarfile.LNKTYPE, link="d/f"),
    ]  # fmt: skip
    members[0].type = tarfile.DIRTYPE
    archive = tar(place / name, *members, mode=mode)

    assert is_packed(name)
    assert 2 == unpack(str(archive), str(place), ROOM)
    assert {"d", "l", "h"} == {path.name for path in place.iterdir()}
    assert ["x"] * 4 == [(place / path).read_text() for path in ("d/f", "l", "d/up", "h")]
    assert 0o755 == stat.S_IMODE((place / "d/f").stat().st_mode)


@pytest.mark.parametrize(
    "members",
    [
        [member("../out")],
        [member("/out")],
        [member("d/../../out")],
        [member("l", tarfile.SYMTYPE, link="..")],
        [member("l", tarfile.SYMTYPE, link="/etc")],
        [member("a/b/c", tarfile.SYMTYPE, link="../.."), member("d", tarfile.SYMTYPE, link="a/b/c/../x")],
        [member("l", tarfile.SYMTYPE, link="."), member("l/f")],
        [member("l", tarfile.SYMTYPE, link="."), member("l/d", tarfile.DIRTYPE)],
        [member("h", tarfile.LNKTYPE, link="../secret")],
        [member("l", tarfile.SYMTYPE, link="."), member("h", tarfile.LNKTYPE, link="l/a")],
        [member("h", tarfile.LNKTYPE, link="nothing")],
        [member("p", tarfile.FIFOTYPE)],
        [member("c", tarfile.CHRTYPE)],
        [member("d", tarfile.DIRTYPE), member("d")],
        [member("large", size=ROOM + 1)],
    ],
)  # fmt: skip
def test_what_leads_out_is_refused(place: Path, members: list[tarfile.TarInfo]) -> None:
    """Also by way of a link, a second name, a device, or size; beside the directory nothing has changed."""
    secret = place.parent / "secret"
    secret.write_text("mine")
    with pytest.raises(UnpackingError):
        unpack(str(tar(place / "a.tar", *members)), str(place), ROOM)

    assert {"in", "secret"} == {path.name for path in place.parent.iterdir()}
    assert ("mine", 1) == (secret.read_text(), secret.stat().st_nlink)


def test_a_zip_is_unpacked_by_the_same_rules(place: Path) -> None:
    """Its links too, of which one that leads out is refused."""
    with zipfile.ZipFile(place / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("d/f", "x" * 10)
        link = zipfile.ZipInfo("l")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "d/f")
    assert 10 == unpack(str(place / "a.zip"), str(place), ROOM)
    assert "x" * 10 == (place / "l").read_text()

    with zipfile.ZipFile(place / "a.zip", "w") as archive:
        link.filename = "m"
        archive.writestr(link, "../../etc")
    with pytest.raises(UnpackingError, match="'m' leads"):
        unpack(str(place / "a.zip"), str(place), ROOM)


def test_single_files_are_unpacked_up_to_the_room(place: Path) -> None:
    """By .gz and .bz2, without that suffix; what is too large in the end is refused, however small it was."""
    (place / "a.txt.gz").write_bytes(gzip.compress(b"gz"))
    (place / "b.bz2").write_bytes(bz2.compress(b"bz2"))
    (place / "bomb.gz").write_bytes(gzip.compress(b"\0" * (ROOM + 1)))
    for name in ("a.txt.gz", "b.bz2"):
        unpack(str(place / name), str(place), ROOM)
    assert (b"gz", b"bz2") == ((place / "a.txt").read_bytes(), (place / "b").read_bytes())
    with pytest.raises(UnpackingError, match="request_disk"):
        unpack(str(place / "bomb.gz"), str(place), ROOM)


@pytest.mark.parametrize("name", ["a.tar", "a.tgz", "a.zip", "a.gz", "a.bz2"])
@pytest.mark.parametrize(
    "data",
    [b"\0", b"no archive at all, but longer than a header" * 20, gzip.compress(b"x" * 999, mtime=0)[:-9]],
    ids=["a byte", "text", "cut"],
)
def test_what_is_no_archive_is_refused(place: Path, name: str, data: bytes) -> None:
    """With a sentence, and not with the error of a library."""
    (place / name).write_bytes(data)
    with pytest.raises(UnpackingError):
        unpack(str(place / name), str(place), ROOM)


def test_a_directory_is_packed_below_its_name(place: Path) -> None:
    """What is packed can be unpacked: with its last name as the top."""
    (place / "a" / "made").mkdir(parents=True)
    (place / "a" / "made" / "f").write_text("x")
    size = pack(f"{place}/a/made", f"{place}/made.tgz")

    assert size == (place / "made.tgz").stat().st_size
    unpack(f"{place}/made.tgz", str(place), ROOM)
    assert {"a", "made"} == {path.name for path in place.iterdir()}
    assert "x" == (place / "made" / "f").read_text()
