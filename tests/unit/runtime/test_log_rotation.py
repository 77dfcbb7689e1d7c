"""Logs do not grow without end, and no line is lost."""

import logging
from pathlib import Path

from kettle.runtime import logs
from kettle.runtime.log_rotation import RotatingHandler, file_of


def test_a_full_log_is_put_aside_and_no_line_is_lost(tmp_path: Path) -> None:
    """
    Old files are numbered from the youngest, the oldest goes, and children go on writing into the same file.
    """
    path = tmp_path / "a.log"
    with path.open("a") as stream, path.open("a") as child:
        handler = RotatingHandler(stream, path, limit_bytes=1000, rotations=3)
        for number in range(100):
            handler.emit(logging.makeLogRecord({"msg": f"{number:>50}"}))
            handler.settle()
        child.write("from a child\n")
        child.flush()
    names = [f"a.log{suffix}" for suffix in (".3", ".2", ".1", "")]
    assert sorted(names) == sorted(each.name for each in tmp_path.iterdir())
    lines = [line.strip() for name in names for line in (tmp_path / name).read_text().splitlines()]
    assert "from a child" == lines.pop()
    assert [str(number) for number in range(100 - len(lines), 100)] == lines
    assert all((tmp_path / name).stat().st_size < 1200 for name in names)
    assert 0o600 == (tmp_path / "a.log.1").stat().st_mode & 0o777


def test_only_logs_of_the_pool_are_put_aside(tmp_path: Path) -> None:
    """A file that somebody else has chosen is theirs, and so is what is no file."""
    (tmp_path / "log").mkdir()
    with (tmp_path / "log" / "a.log").open("a") as ours, (tmp_path / "theirs").open("a") as theirs:
        assert tmp_path / "log" / "a.log" == file_of(ours, tmp_path / "log")
        assert file_of(theirs, tmp_path / "log") is None
    with Path("/dev/null").open("a") as nothing:
        assert file_of(nothing, tmp_path / "log") is None


def test_a_service_that_writes_much_keeps_to_its_limit(tmp_path: Path) -> None:
    """The settings reach the log of a process."""
    path = tmp_path / "b.log"
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    try:
        with path.open("a") as stream:
            logs.setup("test", stream=stream, rotation=logs.Rotation(tmp_path, 5000, 0))
            (handler,) = root.handlers
            assert isinstance(handler, RotatingHandler)
            for number in range(200):
                logging.getLogger("kettle.test").warning("line %d", number)
                handler.settle()
        assert path.stat().st_size < 5200
        assert [path] == list(tmp_path.iterdir())
    finally:
        root.handlers[:] = before
        root.setLevel(level)
        logging.captureWarnings(capture=False)
