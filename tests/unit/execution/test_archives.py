"""Archives become root file systems, and no part of an untrusted archive gets anywhere else."""

import io
import os
import platform
import tarfile
from pathlib import Path

import msgspec
import pytest

from kettle.execution.containers.images.archives import ImageConfig, unpack_archive, unpack_layout
from kettle.execution.containers.policy import ContainerError
from kettle.execution.containers.root_directory import resolve
from kettle.testing.container_images import docker_archive, member, oci_layout, tar_of, tar_with

LIMIT = 1 << 20


def unpacked(data: bytes, root: Path, limit: int = LIMIT) -> ImageConfig:
    root.mkdir(exist_ok=True)
    return unpack_archive(io.BytesIO(data), str(root), limit)


@pytest.mark.parametrize("name", ["../out", "a/../../out", "/../out", "a/b/../../../out"])
def test_a_name_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    """With the name in the sentence; nothing is written."""
    with pytest.raises(ContainerError, match="outside of itself"):
        unpacked(tar_with(member(name)), tmp_path / "root")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("target", ["..", "/", "../../..", "/etc/..", "{outside}"])
def test_a_link_is_followed_inside_only(tmp_path: Path, target: str) -> None:
    """What an archive puts below a link of its own lands below its own root, wherever the link points."""
    link = target.replace("{outside}", str(tmp_path))
    data = tar_with(member("way", tarfile.SYMTYPE, link), member("way/out"), member("way/d/e/out"))

    unpacked(data, tmp_path / "root")

    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "d").exists()
    assert b"x" == (tmp_path / "root" / resolve(str(tmp_path / "root"), "way/out")).read_bytes()


def test_a_hard_link_reaches_the_archives_own_files_only(tmp_path: Path) -> None:
    """A link to a file outside is refused, through links of the archive as well."""
    (tmp_path / "secret").write_text("s")
    for first, second in (
        (member("a", tarfile.LNKTYPE, str(tmp_path / "secret")), member("b")),
        (member("up", tarfile.SYMTYPE, str(tmp_path)), member("a", tarfile.LNKTYPE, "up/secret")),
    ):
        with pytest.raises(ContainerError, match="no file of it"):
            unpacked(tar_with(first, second), tmp_path / f"root{first.name}")
    assert 1 == (tmp_path / "secret").stat().st_nlink


def test_files_keep_no_special_rights(tmp_path: Path) -> None:
    """No set-user-id bit, nothing writable for others; devices and pipes are left out."""
    data = tar_with(
        member("su", mode=0o6777),
        member("null", tarfile.CHRTYPE),
        member("pipe", tarfile.FIFOTYPE),
        member("closed", mode=0),
    )
    unpacked(data, tmp_path / "root")

    assert {"su": 0o100755, "closed": 0o100600} == {
        path.name: path.stat().st_mode for path in (tmp_path / "root").iterdir()
    }


def test_a_later_file_replaces_a_link_and_not_what_it_points_to(tmp_path: Path) -> None:
    """Neither inside nor outside of the root."""
    target = tmp_path / "target"
    target.write_text("kept")
    data = tar_with(member("a", tarfile.SYMTYPE, str(target)), member("a"))

    unpacked(data, tmp_path / "root")

    assert "kept" == target.read_text()
    assert not (tmp_path / "root" / "a").is_symlink()


@pytest.mark.parametrize(
    "data",
    [b"", b"not an archive", b"\x1f\x8b" + b"\0" * 100, b"x" * 5000, tar_with(member("d", tarfile.DIRTYPE))],
)
def test_what_is_no_image_is_said_to_be_none(tmp_path: Path, data: bytes) -> None:
    """Hold code 35 whatever the bytes are."""
    with pytest.raises(ContainerError) as caught:
        unpacked(data, tmp_path / "root")
    assert 35 == caught.value.code


def test_every_truncated_archive_is_refused_with_a_sentence(tmp_path: Path) -> None:
    """Cut anywhere in its compressed data, it is damaged, not a crash."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a").write_bytes(os.urandom(20_000))
    whole = tar_of(tmp_path / "files", mode="w:gz")
    for number, length in enumerate(range(1, len(whole) - 20, 1009)):
        with pytest.raises(ContainerError):
            unpacked(whole[:length], tmp_path / f"root{number}")


def test_an_image_larger_than_the_limit_is_refused(tmp_path: Path) -> None:
    """Before the disk is full."""
    with pytest.raises(ContainerError, match="more than 0 MiB"):
        unpacked(tar_with(member("a"), data=b"x" * 1000), tmp_path / "root", limit=999)


def header(kind: bytes, size: int) -> bytes:
    """A header that promises so many bytes."""
    found = tarfile.TarInfo("x")
    found.type, found.size = kind, size
    return found.tobuf(format=tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    "kind", [tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE]
)
def test_a_description_of_endless_length_is_not_read(tmp_path: Path, kind: bytes) -> None:
    """It would be held in memory."""
    data = header(kind, 2 << 20) + b"a" * (2 << 20) + header(tarfile.REGTYPE, 0) + b"\0" * 1024
    with pytest.raises(ContainerError, match="described by 2097152 bytes"):
        unpacked(data, tmp_path / "root", limit=1 << 30)


def test_endless_descriptions_of_one_member_are_the_images_fault(tmp_path: Path) -> None:
    """Hold code 35, whatever the reader of archives makes of them."""
    name = header(tarfile.GNUTYPE_LONGNAME, 1) + b"a" + b"\0" * 511
    with pytest.raises(ContainerError, match="too many descriptions"):
        unpacked(name * 3000 + header(tarfile.REGTYPE, 0) + b"\0" * 1024, tmp_path / "root")


@pytest.mark.parametrize(
    "members",
    [
        [member(f"f{number}") for number in range(200)],
        [member(f"d{number}", tarfile.DIRTYPE) for number in range(300)],
        [member(f"l{number}", tarfile.SYMTYPE, "x") for number in range(300)],
        [member("/".join(f"d{number}" for number in range(250)) + f"/{last}") for last in "ab"],
    ],
)
def test_a_name_counts_as_a_block(tmp_path: Path, members: list[tarfile.TarInfo]) -> None:
    """A disk is filled by many small files as well, and by directories that nobody names."""
    members = [*members, member("file")]
    assert 1_000_000 < unpacked(tar_with(*members), tmp_path / "roomy", limit=3 << 20).size < 3_000_000
    with pytest.raises(ContainerError, match="more than 0 MiB"):
        unpacked(tar_with(*members), tmp_path / "root", limit=1_000_000)


def test_what_is_read_again_and_again_counts_each_time(tmp_path: Path) -> None:
    """A layer may be named many times, and hold nothing but padding."""
    padded = tar_with(member("a", tarfile.DIRTYPE)) + b"\0" * 300_000
    for number, make in enumerate((oci_layout, docker_archive)):
        image = tar_of(make(tmp_path / f"few{number}", padded))
        assert 0 < unpacked(image, tmp_path / f"root{number}").size
        image = tar_of(make(tmp_path / f"many{number}", *[padded] * 6))
        with pytest.raises(ContainerError, match="more than 1 MiB"):
            unpacked(image, tmp_path / f"full{number}")


def test_there_are_not_endlessly_many_layers(tmp_path: Path) -> None:
    """Each of them costs time, however small it is."""
    layout = oci_layout(tmp_path / "oci", *[tar_with(member("a"))] * 513)
    with pytest.raises(ContainerError, match="513 layers"):
        unpacked(tar_of(layout), tmp_path / "root", limit=1 << 30)


def test_layers_cover_each_other(tmp_path: Path) -> None:
    """
    A later layer replaces, a whiteout removes, an opaque directory starts empty; variables and entry point are read.
    """
    base = tar_with(member("a"), member("b"), member("d/old"), member("lib", tarfile.SYMTYPE, "usr/lib"))
    upper = tar_with(member("a"), member(".wh.b"), member("d/.wh..wh..opq"), member("lib/new"), data=b"2")
    config = {"Env": ["A=1"], "Entrypoint": ["/run"], "Cmd": None}
    layout = oci_layout(tmp_path / "oci", base, upper, config=config)
    saved = docker_archive(tmp_path / "saved", base, upper, config=config)

    def open_part(name: str) -> io.BufferedReader:
        return (layout / name).open("rb")

    for number, archive in enumerate((None, tar_of(layout), tar_of(saved))):
        root = tmp_path / f"root{number}"
        root.mkdir()
        found = unpacked(archive, root) if archive else unpack_layout(open_part, str(root), LIMIT)
        assert (["A=1"], ["/run"], []) == (found.env, found.entrypoint, found.command)
        assert b"2" == (root / "a").read_bytes()
        assert {"a", "d", "lib", "usr"} == {path.name for path in root.iterdir()}
        assert [] == list((root / "d").iterdir())
        assert b"2" == (root / "usr" / "lib" / "new").read_bytes()


@pytest.mark.parametrize(
    "names", [["d/.wh..wh..opq", "d/new", ".wh.gone"], ["d/new", ".wh.gone", "d/.wh..wh..opq"]]
)
def test_a_whiteout_is_about_the_layers_below(tmp_path: Path, names: list[str]) -> None:
    """Wherever in its layer it is, it removes nothing of that layer."""
    layers = tar_with(member("d/old"), member("gone")), tar_with(*map(member, names))
    unpacked(tar_of(oci_layout(tmp_path / "oci", *layers)), tmp_path / "root")

    found = {str(path.relative_to(tmp_path / "root")) for path in (tmp_path / "root").rglob("*")}
    assert {"d", "d/new"} == found


def test_a_root_file_system_may_have_any_names(tmp_path: Path) -> None:
    """Whiteouts are for layers only."""
    unpacked(tar_with(member("a"), member(".wh.a")), tmp_path / "root")
    assert {"a", ".wh.a"} == {path.name for path in (tmp_path / "root").iterdir()}


HERE = {
    "os": "linux",
    "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine()),
}
ELSEWHERE = {"os": "linux", "architecture": "s370"}
UNKNOWN = {"os": "unknown", "architecture": "unknown"}


@pytest.mark.parametrize(
    ("platforms", "words"),
    [
        ([ELSEWHERE, HERE, UNKNOWN], ""),
        ([None], ""),
        ([ELSEWHERE], "it is for linux/s370, and this machine is linux/"),
        ([{**HERE, "os": "windows"}], "it is for windows/"),
        ([HERE, ELSEWHERE, HERE], "holds 2 images"),
    ],
)
def test_the_image_for_this_machine_is_taken(
    tmp_path: Path, platforms: list[dict[str, str] | None], words: str
) -> None:
    """Of those that an index names; none or several are refused with a sentence."""
    layout = oci_layout(tmp_path / "oci", tar_with(member("a")))
    index = msgspec.json.decode((layout / "index.json").read_bytes())
    index["manifests"] = [{**index["manifests"][0], "platform": each} for each in platforms]
    (layout / "index.json").write_bytes(msgspec.json.encode(index))

    if not words:
        unpacked(tar_of(layout), tmp_path / "root")
        assert (tmp_path / "root" / "a").exists()
        return
    with pytest.raises(ContainerError, match=words):
        unpacked(tar_of(layout), tmp_path / "root")


def test_a_part_that_is_another_one_is_refused(tmp_path: Path) -> None:
    """Each part of an OCI image is compared with the digest that names it."""
    layout = oci_layout(tmp_path / "oci", tar_with(member("a")))
    for blob in (layout / "blobs" / "sha256").iterdir():
        kept = blob.read_bytes()
        blob.write_bytes(kept[:-1] + b"?")
        (root := tmp_path / blob.name).mkdir()
        with pytest.raises(ContainerError, match="damaged"):
            unpack_layout(lambda name: (layout / name).open("rb"), str(root), LIMIT)
        blob.write_bytes(kept)


def test_a_part_that_changes_after_it_was_counted_is_not_what_is_unpacked(tmp_path: Path) -> None:
    """A file of a layout may be changed by others: it is read once."""
    honest, poison = tar_with(member("a"), data=b"honest"), tar_with(member("a"), data=b"poison")
    layout = oci_layout(tmp_path / "oci", honest)

    class Changing(io.BytesIO):
        def seek(self, offset: int, whence: int = 0) -> int:
            if self.getvalue() == honest:
                super().seek(0)
                self.write(poison)
            return super().seek(offset, whence)

    (root := tmp_path / "root").mkdir()
    unpack_layout(lambda name: Changing((layout / name).read_bytes()), str(root), LIMIT)

    assert b"honest" == (root / "a").read_bytes()
    assert {"oci", "root"} == {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    "members",
    [
        [member("a"), member("a/b")],
        [member("x" * 300)],
        [member("/".join(["d"] * 3000))],
        [member("a", tarfile.SYMTYPE, "a"), member("a/b")],
    ],
)
def test_names_that_exclude_each_other_are_the_images_fault(
    tmp_path: Path, members: list[tarfile.TarInfo]
) -> None:
    """The job is held: on another machine it would be no better."""
    with pytest.raises(ContainerError) as caught:
        unpacked(tar_with(*members), tmp_path / "root")
    assert 35 == caught.value.code
