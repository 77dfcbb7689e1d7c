"""Which files are in a backup, and what an archive can write."""

import io
import os
import stat
import tarfile
from contextlib import suppress
from pathlib import Path

import pytest

from kettle.backup.errors import BackupError
from kettle.backup.home_files import (
    Seen,
    extract,
    links_elsewhere,
    read_files,
    secrets_of,
    write_files,
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    for name, text in {
        "credentials/schedd.creds": "key",
        "credentials/trust/operator.nk": "key",
        "kettle.toml": "",
        "pool.id": "0123",
        "nats/port": "4222",
        "nats/data/jetstream/block": "made again",
        "postgres/data/PG_VERSION": "18",
        "state/spool/1.0/input": "numbers",
        "startd.a/journal": "of a machine",
        "execute/dir_1/output": "of a running job",
        "unknown/file": "of a service that comes later",
        "log/schedd.log": "long",
    }.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    (path / "state" / "link").symlink_to("spool")
    return path


def files_in(path: Path) -> set[str]:
    return {name for name in read_files(io.BytesIO(path.read_bytes())) if name}


def test_everything_is_in_it_that_is_not_made_again(home: Path, tmp_path: Path) -> None:
    """Keys and settings are apart; what is unknown is in it, what comes again by itself is not."""
    write_files(home, tmp_path / "files.tar", seen={})
    assert {"pool.id", "nats/port", "state/spool/1.0/input", "unknown/file"} == files_in(
        tmp_path / "files.tar"
    )
    secrets = read_files(io.BytesIO(secrets_of(home)))
    assert {"credentials/schedd.creds", "credentials/trust/operator.nk", "kettle.toml"} == set(secrets)


def test_links_to_other_places_are_told(home: Path, tmp_path: Path) -> None:
    """What lies on another disk is not in a backup, and nobody may think that it is."""
    assert [] == list(links_elsewhere(home))
    (home / "state" / "archive").symlink_to(tmp_path / "disk")
    (home / "execute" / "scratch").symlink_to(tmp_path / "scratch")
    (home / "credentials" / "iam").symlink_to(tmp_path / "keys")
    assert {tmp_path / "disk", tmp_path / "keys"} == set(links_elsewhere(home))


def test_the_second_pass_has_what_is_new(home: Path, tmp_path: Path) -> None:
    """After the snapshot only what came or changed is read again."""
    seen: Seen = {}
    write_files(home, tmp_path / "files.tar", seen=seen)
    (home / "state" / "spool" / "1.0" / "input").write_text("other numbers")
    (home / "state" / "spool" / "new").write_text("new")
    write_files(home, tmp_path / "later.tar", seen=seen)
    assert {"state/spool/1.0/input", "state/spool/new"} == files_in(tmp_path / "later.tar")


def test_modes_come_back_and_secrets_are_private(home: Path, tmp_path: Path) -> None:
    """A file has the mode that it had; a secret that others could read cannot be read by them any more."""
    (home / "state" / "spool" / "1.0" / "input").chmod(0o644)
    (home / "credentials" / "schedd.creds").chmod(0o644)
    write_files(home, tmp_path / "files.tar", seen={})
    assert 0o600 == stat.S_IMODE((tmp_path / "files.tar").stat().st_mode)
    again = tmp_path / "again"
    extract(io.BytesIO(secrets_of(home)), again, owners=False)
    with (tmp_path / "files.tar").open("rb") as archive:
        extract(archive, again, owners=False)
    assert 0o644 == stat.S_IMODE((again / "state" / "spool" / "1.0" / "input").stat().st_mode)
    for path in (again / "credentials").rglob("*"):
        assert not path.stat().st_mode & 0o077, path
    assert "spool" == str((again / "state" / "link").readlink())


def test_what_is_there_can_be_kept(home: Path, tmp_path: Path) -> None:
    """In the directory of a pool that has lost its database alone, keys are not replaced by older ones."""
    secrets = secrets_of(home)
    (home / "credentials" / "schedd.creds").write_text("newer")
    extract(io.BytesIO(secrets), home, owners=False, keep=True)
    assert "newer" == (home / "credentials" / "schedd.creds").read_text()


def archive(*members: tarfile.TarInfo) -> io.BytesIO:
    found = io.BytesIO()
    with tarfile.open(fileobj=found, mode="w") as opened:
        for member in members:
            opened.addfile(member, io.BytesIO(b"x" * member.size))
    return io.BytesIO(found.getvalue())


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.linkname, found.mode = kind, link, 0o600
    found.size = 1 if kind == tarfile.REGTYPE else 0
    return found


@pytest.mark.parametrize(
    "members",
    [
        [member("../outside")],
        [member("/tmp/depb/outside")],
        [member("out", tarfile.SYMTYPE, "/tmp"), member("out/side")],
        [member("in", tarfile.SYMTYPE, "."), member("in/side")],
        [member("device", tarfile.CHRTYPE)],
        [member("twice", tarfile.LNKTYPE, "/etc/passwd")],
    ],
)
def test_nothing_is_written_elsewhere(tmp_path: Path, members: list[tarfile.TarInfo]) -> None:
    """An archive that somebody has made cannot write outside of the directory, nor make what is no file."""
    home = tmp_path / "home"
    home.mkdir()
    with pytest.raises(BackupError):
        extract(archive(*members), home, owners=False)
    assert [home] == list(tmp_path.iterdir())


def test_a_directory_is_none_that_a_link_leads_to(tmp_path: Path) -> None:
    """An archive that has a name twice, first as a link to a directory elsewhere, changes nothing there."""
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir(mode=0o700)
    directory = member("name", tarfile.DIRTYPE)
    directory.mode = 0o777
    extract(archive(member("name", tarfile.SYMTYPE, str(elsewhere)), directory), home, owners=False)
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o700
    assert not (home / "name").is_symlink()


LOOKS = 3
"""How often a file is looked at before it is read: when it is found, whether it has changed, and what it is."""


def test_a_link_that_takes_the_place_of_a_file_is_not_read(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Directories below are of the owners of jobs, who may exchange what is in them between the look and the reading: what
    others cannot read would come back as a file of theirs.
    """
    (tmp_path / "shadow").write_text("of root")
    (tmp_path / "directory").mkdir()
    (tmp_path / "directory" / "input").write_text("of root")
    spool = home / "state" / "spool"
    lstat = Path.lstat
    looks: list[Path] = []
    for swapped, instead in ((spool / "1.0" / "input", "shadow"), (spool / "1.0", "directory")):

        def then_exchanged(path: Path, swapped: Path = swapped, instead: str = instead) -> os.stat_result:
            found = lstat(path)
            looks.append(path)
            if looks.count(spool / "1.0" / "input") == LOOKS and not os.path.islink(swapped):  # noqa: PTH114 - by `lstat`
                swapped.rename(tmp_path / f"was {instead}")
                swapped.symlink_to(tmp_path / instead)
            return found

        looks.clear()
        monkeypatch.setattr(Path, "lstat", then_exchanged)
        write_files(home, tmp_path / f"{instead}.tar", seen={})
        monkeypatch.undo()
        assert swapped.is_symlink()
        assert b"of root" not in (tmp_path / f"{instead}.tar").read_bytes()
        swapped.unlink()
        (tmp_path / f"was {instead}").rename(swapped)


def test_a_directory_that_becomes_a_link_while_it_is_restored_leads_nowhere(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who owns a directory of the queue's files has nothing of the archive written elsewhere by root."""
    write_files(home, tmp_path / "files.tar", seen={})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    spool = home / "state" / "spool" / "1.0"
    is_relative_to = Path.is_relative_to
    os_open = os.open

    def exchange() -> None:
        if not spool.is_symlink():
            spool.rename(tmp_path / "was")
            spool.symlink_to(elsewhere)

    def looked(path: Path, *others: Path) -> bool:
        found = is_relative_to(path, *others)  # pyright: ignore[reportDeprecated]
        if path == spool:
            exchange()
        return found

    def opened(path: str | Path, *more: int, **also: int) -> int:
        found = os_open(path, *more, **also)
        if path == "1.0":
            exchange()
        return found

    monkeypatch.setattr(Path, "is_relative_to", looked)
    monkeypatch.setattr(os, "open", opened)
    with (tmp_path / "files.tar").open("rb") as source, suppress(BackupError):
        extract(source, home, owners=False)
    assert spool.is_symlink()
    assert [] == list(elsewhere.iterdir())
