"""Fetching a checkpoint from its URL, beside what the job's plugins have put into its sandbox."""

import hashlib
from pathlib import Path

import pytest

from kettle.execution.attempts.job_spec import Input
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.sandbox.directory import Sandbox
from kettle.transfer.checkpoint_manifest import DIRECTORY, WHERE, Entry, line
from kettle.transfer.plugin import Move
from kettle_services.starter.file_transfer.checkpoint_destination import Remote
from kettle_services.starter.file_transfer.plugin_process import TransferError

MANIFEST = f"{DIRECTORY}/MANIFEST.0001"


class Carried:
    """Keeps what is to be moved."""

    def __init__(self) -> None:
        self.moves: list[Move] = []
        self.places: list[str] = []

    def __call__(self, moves: list[Move], *, upload: bool, manifest: str, place: str) -> None:
        assert not upload
        assert manifest
        self.moves += moves
        self.places.append(place)


def text(*names: str) -> str:
    entries = "".join(line(Entry(name, "0" * 64)) for name in names)
    return entries + line(Entry("MANIFEST.0001", hashlib.sha256(entries.encode()).hexdigest()))


def test_what_the_pool_kept_counts_and_no_link_of_the_job(tmp_path: Path) -> None:
    """
    Given links in the sandbox in place of URL and manifest, when a checkpoint is fetched, then nobody looks at them.
    """
    sandbox, copy = tmp_path / "sandbox", tmp_path / "copy"
    (sandbox / DIRECTORY).mkdir(parents=True)
    (tmp_path / "shadow").write_text("root:secret")
    for name in (WHERE, MANIFEST):
        (sandbox / name).symlink_to(tmp_path / "shadow")
    copy.write_text(text("state"))
    saved = [Input(WHERE, 0o600, data=b"https://h/c/j/0001"), Input(MANIFEST, 0o600, path=str(copy))]
    carried = Carried()

    assert ["state"] == Remote(JobAd({}), Sandbox(str(sandbox)), saved, carried).restore()
    assert ["https://h/c/j/0001"] == carried.places
    assert [Move("https://h/c/j/0001/state", f"{sandbox}/state")] == carried.moves


@pytest.mark.parametrize(
    "saved",
    [
        [Input(MANIFEST, 0o600, data=text("state").encode())],
        [Input(WHERE, 0o600, data=b"\xff"), Input(MANIFEST, 0o600, data=text("state").encode())],
        [Input(WHERE, 0o600, data=b"https://h/c"), Input(MANIFEST, 0o600, data=b"no manifest")],
    ],
)
def test_what_makes_no_sense_holds_the_job(tmp_path: Path, saved: list[Input]) -> None:
    """A URL or a manifest that is missing or is none is told, and nothing is moved."""
    carried = Carried()
    with pytest.raises(TransferError) as caught:
        Remote(JobAd({}), Sandbox(str(tmp_path)), saved, carried).restore()

    assert (True, 13, []) == (caught.value.ending.holds, caught.value.ending.code, carried.moves)
