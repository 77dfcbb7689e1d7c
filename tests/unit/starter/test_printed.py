"""What tasks have printed into files of their own."""

import os
from pathlib import Path

from kettle_services.starter.tasks.printed import append_printed


def test_a_file_that_is_also_what_it_is_copied_to_is_copied_once(tmp_path: Path) -> None:
    """A task that makes a second name of the job's output does not fill the disk."""
    sink, source = tmp_path / "stdout", tmp_path / "own"
    sink.write_bytes(b"printed\n")
    os.link(sink, source)
    append_printed(f"{source}", f"{sink}", 1000)
    assert b"printed\nprinted\n" == sink.read_bytes()


def test_no_more_holes_are_copied_than_the_job_has_room_for(tmp_path: Path) -> None:
    """A file may say that it is far larger than any disk."""
    sink, source = tmp_path / "stdout", tmp_path / "own"
    source.touch()
    os.truncate(source, 1 << 40)
    append_printed(f"{source}", f"{sink}", 1000)
    assert bytes(1000) == sink.read_bytes()


def test_what_is_in_a_file_is_copied_also_beyond_that(tmp_path: Path) -> None:
    """Whether a job may have more is not decided here."""
    sink, source = tmp_path / "stdout", tmp_path / "own"
    source.write_bytes(os.urandom(5000))
    append_printed(f"{source}", f"{sink}", 1000)
    assert source.read_bytes() == sink.read_bytes()


def test_what_is_no_file_has_nothing(tmp_path: Path) -> None:
    """A link, a pipe, a directory, nothing at all."""
    sink, secret = tmp_path / "stdout", tmp_path / "secret"
    secret.write_bytes(b"of somebody else")
    (tmp_path / "link").symlink_to(secret)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    for name in ("link", "pipe", "directory", "absent"):
        append_printed(f"{tmp_path}/{name}", f"{sink}", 1000)
    assert not sink.exists()
