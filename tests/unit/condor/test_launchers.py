"""The files that a shell finds."""

import subprocess
import sys
from pathlib import Path

import pytest

from kettle_services.condor import launchers
from kettle_services.condor.start import COMMANDS


def test_only_what_has_changed_is_written_again(tmp_path: Path) -> None:
    """And what is no command any more goes."""
    place = launchers.install(tmp_path)
    assert sorted(COMMANDS) == sorted(path.name for path in place.iterdir())
    before = {path.name: path.stat().st_ino for path in place.iterdir()}
    (place / "condor_q").write_text("damaged")
    (place / "condor_old").write_text("")
    launchers.install(tmp_path)
    after = {path.name: path.stat().st_ino for path in place.iterdir()}
    assert {"condor_q"} == {name for name, inode in after.items() if inode != before.get(name)}
    assert before.keys() == after.keys()


def test_a_launcher_needs_no_environment(tmp_path: Path) -> None:
    place = launchers.install(tmp_path)
    said = subprocess.run(
        [place / "condor_version"], env={}, capture_output=True, text=True, check=True, timeout=60
    )
    assert said.stdout.startswith("$CondorVersion: ")
    assert "" == said.stderr


def test_an_interpreter_may_have_any_name(tmp_path: Path) -> None:
    """The first line of a script can hold neither a blank nor a long path; then a shell starts it."""
    odd = tmp_path / "it's a place" / "python"
    odd.parent.mkdir()
    odd.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    odd.chmod(0o755)
    script = tmp_path / "condor_version"
    script.write_text(launchers.launcher("condor_version", str(odd)))
    script.chmod(0o755)
    said = subprocess.run([script], env={}, capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.startswith("$CondorVersion: ")
    long = launchers.launcher("condor_q", "/" + "x" * 200)
    assert long.startswith("#!/bin/sh\n")


HEAVY = {"argparse", "asyncio", "email", "logging", "nats", "numpy", "ssl"}
LANGUAGE = {"kettle.classad.parser", "kettle.submit", "kettle.transforms"}
ROLES = {"kettle_wire.commands.schedd", "kettle_wire.events"}


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        ("q", HEAVY | LANGUAGE | ROLES),
        ("act", HEAVY | LANGUAGE | ROLES),
        ("submit", HEAVY | LANGUAGE | ROLES),
        ("status", HEAVY | LANGUAGE | ROLES),
        ("vacate", HEAVY | LANGUAGE),
        ("now", HEAVY | LANGUAGE),
        ("userprio", HEAVY | LANGUAGE),
        ("transform_ads", HEAVY | LANGUAGE | ROLES),
    ],
)
def test_a_command_loads_no_more_than_it_needs(module: str, forbidden: set[str]) -> None:
    """Programs run them in loops: what is only sometimes needed is loaded then."""
    paths = launchers.module_paths()
    code = f"import sys; sys.path += {paths!r}; from kettle.client.connections import short_process as short; short.defer_loading(); import kettle_services.condor.start; "
    code += f"import kettle_services.condor.commands.{module}; print(*sys.modules, sep=chr(10))"
    said = subprocess.run(
        [sys.executable, "-ISc", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert set() == forbidden & set(said.stdout.split())
