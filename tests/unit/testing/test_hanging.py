"""Tests that hang are ended, by one watch for many tests."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests import hanging

_PROGRAM = """
import sys, threading
import pytest
from tests import hanging

hanging._SECONDS, hanging._OLD_SECONDS = 1, float(sys.argv[2])
class Plugin:
    def pytest_configure(self, config):
        config.pluginmanager.register(hanging.Watch(config))
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "--confcutdir", sys.argv[1], "-c", "/dev/null", sys.argv[1]], [Plugin()]))
"""
_HANGS = "import threading\ndef test_before(): pass\ndef test_that_hangs(): threading.Event().wait()\n"


@pytest.mark.parametrize("old", ["0", "30"])
def test_one_that_hangs_is_ended_and_shows_where(tmp_path: Path, old: str) -> None:
    """Whether the watch was begun with it or with a test before."""
    (tmp_path / "test_given.py").write_text(_HANGS)
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, tmp_path, old],
        cwd=Path(hanging.__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert 1 == done.returncode
    assert "in test_that_hangs" in done.stderr
    assert "in test_before" not in done.stderr


def test_a_test_that_passes_after_others_does_not_begin_the_watch_again(
    monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    """To begin and to end it costs, so that is done when it has become old."""
    now, did = [0.0], list[str]()
    clock = SimpleNamespace(monotonic=lambda: now[0])

    def begun(*_: object, **__: object) -> None:
        did.append("begun")

    handler = SimpleNamespace(
        dump_traceback_later=begun, cancel_dump_traceback_later=lambda: did.append("ended")
    )
    monkeypatch.setattr(hanging, "time", clock)
    monkeypatch.setattr(hanging, "faulthandler", handler)
    watch = hanging.Watch(pytestconfig)
    for seconds in (0, 1, 20, 31, 32, 60):
        now[0] = seconds
        watch.pytest_runtest_protocol()
    assert ["begun", "begun"] == did
    watch.pytest_sessionfinish()
    assert ["begun", "begun", "ended"] == did
