"""Plugins that are run: real processes, good ones and bad ones."""

import errno
import os
import signal
from pathlib import Path

import pytest

from kettle.testing.transfer_plugin import install
from kettle.transfer.plugin import Move, Moved, Order, Plugin
from kettle.transfer.plugin_runs import carry_out
from kettle.transfer.plugins import own_plugins

from .conftest import Web


def order(
    scratch: Path, moves: list[Move], *plugins: Plugin, upload: bool = False, lifetime: float = 600.0
) -> Order:
    return Order(
        upload=upload,
        moves=moves,
        plugins=list(plugins),
        lifetime=lifetime,
        scratch=str(scratch),
        environment={"PATH": os.environ["PATH"]},
    )


def site(directory: Path) -> Plugin:
    return Plugin(path=str(install(directory)), methods=("good", "fine"))


def run(tmp_path: Path, behaviour: str, *, lifetime: float = 600.0) -> Moved:
    (tmp_path / "source").write_text("data")
    move = Move(f"good://{tmp_path}/source?{behaviour}", str(tmp_path / "target"))
    return carry_out(order(tmp_path, [move], site(tmp_path), lifetime=lifetime))


def test_each_plugin_is_called_once_with_all_its_files(tmp_path: Path, web: Web) -> None:
    """A program of the machine and a module of ours, side by side; nothing of questions and answers stays."""
    (tmp_path / "source").write_text("data")
    web.files["w"] = b"from the web"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    moves = [
        Move(f"good://{tmp_path}/source", f"{scratch}/a"),
        Move(web.url("w"), f"{scratch}/b"),
        Move(f"fine://{tmp_path}/source", f"{scratch}/c"),
    ]
    moved = carry_out(order(scratch, moves, site(tmp_path), *own_plugins(("http",))))

    assert (20, None) == (moved.bytes, moved.ending)
    assert {"a": "data", "b": "from the web", "c": "data"} == {
        path.name: path.read_text() for path in scratch.iterdir()
    }


def test_files_are_sent(tmp_path: Path) -> None:
    """With -upload the way is the other."""
    (tmp_path / "result").write_text("result")
    move = Move(f"good://{tmp_path}/there", str(tmp_path / "result"))
    moved = carry_out(order(tmp_path, [move], site(tmp_path), upload=True))
    assert (6, None) == (moved.bytes, moved.ending)
    (file,) = moved.files
    assert (True, "origin", 6, "") == (file.upload, file.source, file.bytes, file.error)
    assert "result" == (tmp_path / "there").read_text()


@pytest.mark.parametrize(
    ("behaviour", "hold", "subcode", "words"),
    [
        ("fail", True, 3 << 8, "exited with 3: the archive is on strike"),
        ("crash", True, 11, "killed by signal 11"),
        ("garbage", False, -1004, "nothing of use"),
        ("silent", False, -1004, "nothing of it"),
        ("lie", True, errno.ENOENT, "no such file"),
    ],
)
def test_bad_plugins(tmp_path: Path, behaviour: str, hold: bool, subcode: int, words: str) -> None:
    """However it fails, there is a code and a sentence."""
    ending = run(tmp_path, behaviour).ending
    assert ending is not None
    assert (hold, subcode) == (ending.holds, ending.subcode)
    assert words in ending.reason


def test_a_plugin_that_hangs_is_killed(tmp_path: Path) -> None:
    """After its lifetime, and the job is held."""
    ending = run(tmp_path, "hang", lifetime=0.3).ending
    assert ending is not None
    assert (True, 13, errno.ETIME) == (ending.holds, ending.code, ending.subcode)


def test_a_plugin_that_leaves_somebody_behind_is_done_when_it_ends(tmp_path: Path) -> None:
    """A process that holds its streams open is not waited for."""
    assert run(tmp_path, "leave").ending is None
    os.kill(
        int((tmp_path / "source.pid").read_text()), signal.SIGKILL
    )  # a session of its own: it really stayed
    assert "data" == (tmp_path / "target").read_text()


def test_a_program_that_cannot_be_run(tmp_path: Path) -> None:
    """Is the machine's ending."""
    (tmp_path / "broken").write_text("#!/nonexistent\n")
    (tmp_path / "broken").chmod(0o755)
    plugin = Plugin(path=str(tmp_path / "broken"), methods=("good",))
    ending = carry_out(order(tmp_path, [Move("good://x/y", "/tmp/y")], plugin)).ending
    assert ending is not None
    assert (False, -1003) == (ending.holds, ending.subcode)


def test_the_older_protocol(tmp_path: Path) -> None:
    """A plugin without support for several files is called with source and target, file by file."""
    program = tmp_path / "old"
    program.write_text(
        '#!/bin/sh\n[ "$1" = old://x/bad ] && { echo no such thing >&2; exit 4; }\necho "$1" > "$2"\n'
    )
    program.chmod(0o755)
    plugin = Plugin(path=str(program), methods=("old",), several=False)
    good = [Move(f"old://x/{n}", str(tmp_path / n)) for n in "ab"]

    assert carry_out(order(tmp_path, good, plugin)).ending is None
    assert "old://x/b\n" == (tmp_path / "b").read_text()
    bad = carry_out(order(tmp_path, [Move("old://x/bad", str(tmp_path / "c")), *good], plugin)).ending
    assert bad is not None
    assert (True, 4 << 8) == (bad.holds, bad.subcode)
    assert "no such thing" in bad.reason
