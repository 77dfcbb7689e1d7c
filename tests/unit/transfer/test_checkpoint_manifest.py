"""Checkpoints at a URL: their manifest, and their way there and back."""

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from kettle.transfer import checkpoint_manifest
from kettle.transfer.checkpoint_manifest import CheckpointError, Entry
from kettle.transfer.plugin import Move, Order
from kettle.transfer.plugin_protocol import question
from kettle.transfer.plugin_runs import carry_out
from kettle.transfer.plugins import file, http, own_plugins

from .conftest import Web

SUM = hashlib.sha256(b"text").hexdigest()
OWN = Entry("MANIFEST.0003", SUM)


def sent(scratch: Path, place: str, *names: str) -> str:
    """Send files of a sandbox as checkpoint 3; the manifest."""
    manifest = scratch / checkpoint_manifest.DIRECTORY / "MANIFEST.0003"
    moves = [Move(checkpoint_manifest.url(place, name), str(scratch / name)) for name in names]
    moved = carry_out(order(scratch, place, manifest, moves, upload=True))
    assert moved.ending is None, moved.ending
    return manifest.read_text()


def order(scratch: Path, place: str, manifest: Path, moves: list[Move], *, upload: bool) -> Order:
    return Order(
        upload=upload,
        moves=moves,
        plugins=own_plugins(("file", "http")),
        lifetime=600.0,
        scratch=str(scratch),
        environment={},
        manifest=str(manifest),
        place=place,
    )


def test_a_place_has_the_job_and_the_number() -> None:
    """No character of the job's id ends the path of the URL, nor does one of a file's name."""
    assert "https://h/p/schedd_7.0_1700000000/0012" == checkpoint_manifest.place(
        "https://h/p/", "schedd#7.0#1700000000", 12
    )
    assert "x://h/a%23b/c%3Fd%25" == checkpoint_manifest.url("x://h", "a#b/c?d%")


@pytest.mark.parametrize(
    ("destination", "words"),
    [
        ("file:///pool/key?", "a path only"),
        ("file:///pool/key#", "a path only"),
        ("https://h/delete?name=x&", "a path only"),
        ("file:///pool/../etc", "no . and .."),
        ("https://h/a/%2e%2E/b", "no . and .."),
        ("https://h/a%2Fb", "no . and .."),
        ("file:///a%00", "no . and .."),
        ("s3://bucket/c", "nothing here would remove them"),
        ("gs://bucket/c", "nothing here would remove them"),
        ("/pool", "write a URL"),
        ("file:///", "write a URL"),
    ],
)
def test_what_could_mean_something_else_is_no_place(destination: str, words: str) -> None:
    """Whatever is saved below a destination is removed there by its path one day."""
    with pytest.raises(CheckpointError, match=words):
        checkpoint_manifest.place(destination, "schedd#7.0#1700000000", 1)


def test_a_manifest_is_read_as_it_was_written() -> None:
    """Whatever characters the names have."""
    names = ["state", "d/e f", "a\\nb", "line\nbreak", "cr\rx", "back\\slash"]
    entries = [Entry(name, SUM) for name in names]
    text = "".join(checkpoint_manifest.line(entry) for entry in [*entries, OWN])

    assert (entries, OWN) == checkpoint_manifest.read(text)
    assert text == checkpoint_manifest.body(text) + checkpoint_manifest.line(OWN)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "a line that is none"),
        (checkpoint_manifest.line(Entry("state", SUM)), "does not end with its own sum"),
        (f"{SUM[:-1]} *state\n" + checkpoint_manifest.line(OWN), "a line that is none"),
        (
            checkpoint_manifest.line(Entry("../x", SUM)) + checkpoint_manifest.line(OWN),
            "outside of the sandbox",
        ),
        (
            checkpoint_manifest.line(Entry("/etc/x", SUM)) + checkpoint_manifest.line(OWN),
            "outside of the sandbox",
        ),
    ],
)
def test_what_is_no_manifest(text: str, words: str) -> None:
    """Is refused with what is wrong."""
    with pytest.raises(CheckpointError, match=words):
        checkpoint_manifest.read(text)


def test_files_are_removed_before_what_they_are_in() -> None:
    """The manifest after all that it names, inner directories before outer ones, that of the job last."""
    entries = [Entry("a/b/c", SUM), Entry("a/d", SUM), Entry("e", SUM)]
    assert [
        "x://h/j/0003/a/b/c", "x://h/j/0003/a/d", "x://h/j/0003/e", "x://h/j/0003/MANIFEST.0003",
        "x://h/j/0003/a/b/", "x://h/j/0003/a/", "x://h/j/0003/", "x://h/j/",
    ] == checkpoint_manifest.everything("x://h/j/0003", entries, OWN)  # fmt: skip


def test_sha256sum_agrees(tmp_path: Path) -> None:
    """
    The manifest is what that program prints, and checks; its last line is the sum of all lines before it.
    """
    scratch, there = tmp_path / "scratch", tmp_path / "there"
    (scratch / "d").mkdir(parents=True)
    (scratch / "d" / "a b").write_text("one")
    (scratch / "c").write_text("two")
    text = sent(scratch, f"file://{there}/0003", "d/a b", "c")
    printed = subprocess.run(
        ["sha256sum", "--binary", "d/a b", "c"],
        cwd=there / "0003",
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert printed == checkpoint_manifest.body(text)
    assert (
        checkpoint_manifest.line(Entry("MANIFEST.0003", hashlib.sha256(printed.encode()).hexdigest()))
        == text[len(printed) :]
    )
    assert text == (there / "0003" / "MANIFEST.0003").read_text()


@pytest.mark.parametrize("spoilt", ["", "c", "MANIFEST.0003"])
def test_what_comes_back_is_compared(tmp_path: Path, spoilt: str) -> None:
    """A checkpoint is used as it was saved, or not at all."""
    scratch, there, again = tmp_path / "scratch", tmp_path / "there", tmp_path / "again"
    (scratch / "d").mkdir(parents=True)
    (scratch / "d" / "a").write_text("one")
    (scratch / "c").write_text("two")
    place = f"file://{there}/0003"
    text = sent(scratch, place, "d/a", "c")
    again.mkdir()
    manifest = again / "MANIFEST.0003"
    manifest.write_text(
        text if spoilt != manifest.name else text.replace("*c", "*C", 1).replace("*C", "*c ", 1)
    )
    if spoilt == "c":
        (there / "0003" / "c").write_text("tow")
    if spoilt == manifest.name:
        shutil.copy(there / "0003" / "c", there / "0003" / "c ")
    names = [entry.name for entry in checkpoint_manifest.read(manifest.read_text())[0]]
    moves = [Move(checkpoint_manifest.url(place, name), str(again / name)) for name in names]
    ending = carry_out(order(again, place, manifest, moves, upload=False)).ending

    if not spoilt:
        assert ending is None
        assert ("one", "two") == ((again / "d" / "a").read_text(), (again / "c").read_text())
    else:
        assert ending is not None
        assert (True, 13) == (ending.holds, ending.code)
        assert f"{spoilt} is not what was" in ending.reason


def test_a_checkpoint_is_removed(tmp_path: Path, web: Web) -> None:
    """By file and by HTTP, with directories where there are such; once more changes nothing."""
    scratch, there = tmp_path / "scratch", tmp_path / "there"
    (scratch / "d").mkdir(parents=True)
    (scratch / "d" / "a").write_text("one")
    (there / "other").mkdir(parents=True)
    for module, place in ((file, f"file://{there}/job/0003"), (http, web.url("job/0003"))):
        text = sent(scratch, place, "d/a")
        urls = checkpoint_manifest.everything(place, *checkpoint_manifest.read(text))
        ask, answer = tmp_path / "ask", tmp_path / "answer"
        ask.write_text(question(Move(url, "") for url in urls))
        answer.touch()
        for _ in range(2):
            assert 0 == module.main(["-infile", str(ask), "-outfile", str(answer), "-delete"])

    assert ["other"] == [path.name for path in there.iterdir()]
    assert {} == web.files
