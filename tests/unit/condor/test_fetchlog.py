"""condor_fetchlog: logs of this machine, as they are written."""

import socket
from pathlib import Path

import pytest

from kettle_services.condor.commands import fetchlog
from kettle_services.condor.errors import ToolError, WordsError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KETTLE_HOME", str(tmp_path))
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "schedd.log").write_text('{"msg":"new"}\n')
    (tmp_path / "log" / "schedd.log.1").write_text('{"msg":"old"}\n')
    (tmp_path / "log" / "startd.log").write_text("no JSON\n")
    return tmp_path


@pytest.mark.usefixtures("home")
def test_the_log_of_a_daemon_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """And the one that was put aside before it."""
    for words, text in (
        (("localhost", "SCHEDD"), '{"msg":"new"}\n'),
        ((socket.gethostname(), "-schedd", "schedd.old"), '{"msg":"old"}\n'),
    ):
        assert 0 == fetchlog.run("condor_fetchlog", list(words))
        assert text == capsys.readouterr().out


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("elsewhere", "SCHEDD"), "are read on elsewhere"),
        (("localhost", "SCHED"), "did you mean schedd.; there are schedd, startd"),
        (("localhost", "STARTD.old"), "nothing was put aside yet"),
        (("localhost", "HISTORY"), "condor_history"),
        (("localhost", "../schedd"), "no log of ../schedd"),
    ],
)
def test_other_logs_are_refused(words: tuple[str, ...], says: str) -> None:
    """With what to do instead."""
    with pytest.raises(ToolError, match=says):
        fetchlog.run("condor_fetchlog", list(words))


def test_machine_and_daemon_are_named() -> None:
    """Both."""
    with pytest.raises(WordsError, match="MACHINE SUBSYSTEM"):
        fetchlog.run("condor_fetchlog", ["SCHEDD"])
