"""
What is asked of XRootD's programs, and what is made of what they say; with programs that say what a test wants.
"""

import zlib
from pathlib import Path

import pytest

from kettle.transfer.plugins import xroot
from kettle.transfer.plugins.xroot import XrootError

DATA = b"0123456789" * 1000


class Programs:
    """`xrdcp` copies `source`; `xrdfs` says size and checksum.  `log` has a line for each call."""

    def __init__(self, place: Path) -> None:
        self.log = place / "log"
        self.source = place / "source"
        self.size = place / "size"
        self.checksum = place / "checksum"
        self.copies = place / "copies"
        self.removal = place / "removal"
        self.removal.write_text("true")
        self.source.write_bytes(DATA)
        self.size.write_text(f"Path: /f\nSize:   {len(DATA)}\n")
        self.checksum.write_text(f"adler32 {zlib.adler32(DATA):08x}\n")
        self.copies.write_text("cat $source > $last")
        (place / "xrdcp").write_text(
            f"#!/bin/sh\necho xrdcp $* >> {self.log}\nfor last; do :; done\nsource={self.source}\n. {self.copies}\n"
        )
        (place / "xrdfs").write_text(
            f"#!/bin/sh\necho xrdfs $* >> {self.log}\n[ $2 = stat ] && exec cat {self.size}\n"
            f"[ $2 = rm ] && {{ . {self.removal}; exit; }}\n"
            f"[ -s {self.checksum} ] || exit 54\ncat {self.checksum}\n"
        )
        for name in ("xrdcp", "xrdfs"):
            (place / name).chmod(0o755)

    def calls(self, name: str) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if line.startswith(name)]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    monkeypatch.setattr(xroot, "XRDCP", str(tmp_path / "xrdcp"))
    monkeypatch.setattr(xroot, "XRDFS", str(tmp_path / "xrdfs"))
    return Programs(tmp_path)


@pytest.mark.parametrize(
    ("url", "server", "path"),
    [
        ("root://h//a/f", "root://h", "/a/f"),
        ("xroot://h:1094//f", "root://h:1094", "/f"),
        ("xroots://h/f?x=1", "roots://h", "/f?x=1"),
    ],
)
def test_a_file_is_looked_at_and_copied(
    programs: Programs, tmp_path: Path, url: str, server: str, path: str
) -> None:
    """Its size, its bytes, its checksum; under the name by which the programs know the method."""
    target = tmp_path / "got"

    assert len(DATA) == xroot.fetch(url, str(target))
    assert target.read_bytes() == DATA
    address = f"{server}/{url.partition('://')[2].partition('/')[2]}"
    assert [f"xrdcp --force --nopbar --silent {address} {target}"] == programs.calls("xrdcp")
    assert [f"xrdfs {server} stat {path}", f"xrdfs {server} query checksum {path}"] == programs.calls("xrdfs")


@pytest.mark.parametrize(
    ("checksum", "copies", "words"),
    [
        ("adler32 00000001\n", "cat $source > $last", "its checksum (adler32) is 00000001 on the server"),
        ("", "head -c 5 $source > $last", "the server has 10000 bytes, and 5 arrived"),
        ("", "echo [ERROR] no route >&2; exit 51", "xrdcp exits with 51: [ERROR] no route"),
    ],
)
def test_what_is_not_whole_is_tried_again_and_then_told(
    programs: Programs, tmp_path: Path, checksum: str, copies: str, words: str
) -> None:
    """Another checksum, other bytes, or the program's own words."""
    programs.checksum.write_text(checksum)
    programs.copies.write_text(copies)
    with pytest.raises(XrootError) as caught:
        xroot.fetch("root://h//f", str(tmp_path / "got"))

    assert words in str(caught.value)
    assert len(programs.calls("xrdcp")) == xroot.TRIES


def test_a_file_that_is_not_there_is_not_tried_again(programs: Programs, tmp_path: Path) -> None:
    """What the server has decided it decides again."""
    programs.copies.write_text(
        "echo '[ERROR] Server responded with an error: [3011] no such file' >&2; exit 54"
    )
    with pytest.raises(XrootError, match="no such file"):
        xroot.fetch("root://h//f", str(tmp_path / "got"))

    assert 1 == len(programs.calls("xrdcp"))


def test_a_program_that_does_not_end_is_ended(
    programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a time that depends on the size."""
    monkeypatch.setattr(xroot, "LEAST_S", 0.2)
    monkeypatch.setattr(xroot, "TRIES", 1)
    programs.copies.write_text("exec sleep 600")
    with pytest.raises(XrootError, match="was not done after"):
        xroot.fetch("root://h//f", str(tmp_path / "got"))


@pytest.mark.parametrize("url", ["root://h", "root:///f", "root://h/"])
def test_what_names_no_file(programs: Programs, tmp_path: Path, url: str) -> None:
    """It is refused with an example."""
    with pytest.raises(XrootError, match="root://HOST//PATH"):
        xroot.fetch(url, str(tmp_path / "got"))


def test_a_machine_without_the_programs_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """And names the package."""
    monkeypatch.setattr(xroot, "XRDCP", "")
    assert "xrootd-client" in xroot.lacks()


def test_a_file_is_removed(programs: Programs) -> None:
    """One that is not there is removed already; a directory stays; what the server refuses is told."""
    for url in ("root://h//a/f", "root://h//a/"):
        xroot.remove(url)
    programs.removal.write_text(
        "echo '[ERROR] Server responded with an error: [3011] no such file' >&2; exit 54"
    )
    xroot.remove("root://h//a/f")
    programs.removal.write_text("echo '[ERROR] Server responded with an error: [3010] not you' >&2; exit 54")
    with pytest.raises(XrootError, match="not you"):
        xroot.remove("root://h//a/f")

    assert ["xrdfs root://h rm /a/f"] * 3 == programs.calls("xrdfs")


@pytest.mark.parametrize("query", ["authz=Bearer%20hush", "x=1&AUTHZ=hush", "%61uthz=hush"])
def test_a_token_in_a_url_goes_to_no_command_line(programs: Programs, tmp_path: Path, query: str) -> None:
    """Everybody on the machine reads those: it is said where a token belongs, and not what it was."""
    with pytest.raises(XrootError, match="BEARER_TOKEN_FILE") as caught:
        xroot.fetch(f"root://h//f?{query}", str(tmp_path / "got"))

    assert "hush" not in str(caught.value)
    assert not programs.log.exists()
