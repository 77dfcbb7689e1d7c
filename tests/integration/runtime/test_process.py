"""A service as a process: exit statuses, signals, the lifeline, and what it imports."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Generator, Mapping
from typing import Any, Final

import pytest

from kettle.runtime import EXIT_CLEAN, EXIT_FAILED, EXIT_SETTINGS, make_lifeline
from kettle.runtime.lifeline import EXIT_ORPHANED
from kettle.testing.patience import PATIENCE_S

SERVICE: Final = """
import asyncio, sys, time
from kettle.runtime import Runtime, Settings, run

class Own(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    lease: float = 20.0

async def serve(rt: Runtime, settings: Own) -> None:
{serve}

raise SystemExit(run("schedd", Own, serve))
"""
WAITS: Final = """
rt.ready()
await rt.stopping.wait()
print("drained", flush=True)
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Generator[Start]:
    started: list[subprocess.Popen[str]] = []

    def start(serve: str, /, *, fds: tuple[int, ...] = (), **environ: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVICE.format(serve=textwrap.indent(serve, "    "))],
            env=clean(environ),
            pass_fds=fds,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def clean(environ: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KETTLE_")}
    return {**kept, "KETTLE_HOME": "/nonexistent", "PYTHONPATH": os.pathsep.join(sys.path), **environ}


def log_line(process: "subprocess.Popen[str]") -> dict[str, Any]:
    assert process.stderr is not None
    line: dict[str, Any] = json.loads(process.stderr.readline())
    return line


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_drains(start: Start, number: signal.Signals) -> None:
    """SIGTERM and SIGINT let the service finish, and then it has ended cleanly."""
    process = start(WAITS)
    assert log_line(process)["msg"] == "ready"
    process.send_signal(number)
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, output) == (EXIT_CLEAN, "drained\n")


def test_second_signal_ends_at_once(start: Start) -> None:
    """Who asks twice does not wait for the drain deadline."""
    process = start("rt.ready()\nawait rt.stopping.wait()\nrt.ready()\nawait asyncio.sleep(3600)")
    log_line(process)
    process.terminate()
    log_line(process)
    process.terminate()
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == EXIT_CLEAN


def test_failure_is_logged_once_with_its_traceback(start: Start) -> None:
    """A service that fails says why in one structured line, and its exit status says that it failed."""
    process = start('raise ValueError("boom")')
    _, log = process.communicate(timeout=PATIENCE_S)
    (line,) = [json.loads(line) for line in log.splitlines()]
    assert process.returncode == EXIT_FAILED
    assert (line["level"], line["msg"]) == ("critical", "failed: boom")
    assert line["exc"].endswith("ValueError: boom")


def test_bad_settings_are_a_sentence(start: Start) -> None:
    """A misspelt variable ends the service at once with one sentence and a status of its own."""
    process = start(WAITS, KETTLE_SCHEDD_LESE="1")
    _, log = process.communicate(timeout=PATIENCE_S)
    expected = "kettle schedd: KETTLE_SCHEDD_LESE: unknown setting; did you mean KETTLE_SCHEDD_LEASE?\n"
    assert (EXIT_SETTINGS, expected) == (process.returncode, log)


def test_service_ends_with_its_master(start: Start) -> None:
    """When the master is gone, a service stops in an orderly way if it can."""
    line = make_lifeline()
    process = start(WAITS, fds=(line.read_fd,), **line.environ())
    log_line(process)
    line.close()
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode in {EXIT_CLEAN, EXIT_ORPHANED}


def test_hanging_service_ends_with_its_master(start: Start) -> None:
    """A service whose event loop hangs does not outlive its master."""
    line = make_lifeline()
    process = start("rt.ready()\ntime.sleep(3600)", fds=(line.read_fd,), **line.environ())
    log_line(process)
    line.close()
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == EXIT_ORPHANED


def test_service_imports_only_what_it_uses() -> None:
    """The runtime alone brings in neither the web server nor OpenTelemetry nor a database driver."""
    program = "import sys, kettle.runtime; print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", program],
        env=clean({}),
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert set() == {"aiohttp", "opentelemetry", "asyncpg", "nats", "uvloop"} & set(result.stdout.split())
