"""condor_run: what it submits."""

from pathlib import Path

import pytest

from kettle_services.condor.commands import run
from kettle_services.condor.errors import WordsError

FILES = {name: Path(f".condor_{name}.7") for name in ("run", "out", "error")}


def test_the_machine_is_chosen_by_the_environment() -> None:
    """Its variables are conditions of the job; lines of one's own come last, so that they count."""
    environ = {
        "CONDOR_ARCH": "X86_64",
        "CONDOR_OPSYS": "LINUX",
        "CONDOR_REQUIREMENTS": "Memory > 1 || GPUs > 0",
    }
    text = run.description(FILES, run.Wanted(lines=["request_memory = 1024"], getenv=True), environ)
    assert [
        "universe = vanilla",
        "executable = .condor_run.7",
        "output = .condor_out.7",
        "error = .condor_error.7",
        "notification = never",
        "getenv = true",
        'requirements = (Memory > 1 || GPUs > 0) && (Arch == "X86_64") && (OpSys == "LINUX")',
        "request_memory = 1024",
        "queue",
    ] == text.splitlines()
    assert "requirements" not in run.description(FILES, run.Wanted(), {})


def test_there_has_to_be_a_command() -> None:
    with pytest.raises(WordsError, match="which command"):
        run.run("condor_run", ["-getenv"])
