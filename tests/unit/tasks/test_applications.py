"""Programs of SCIF applications, run by the shell of an image."""

import subprocess
from pathlib import Path

from kettle.tasks.applications import in_application


def said(place: Path, name: str, *words: str) -> tuple[int, str, str]:
    """What a program says in an image whose root is this directory."""
    shell, option, script, *rest = in_application(name, words)
    script = script.replace("=/scif", f"={place}/scif")
    environ = {"PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [shell, option, script, *rest], env=environ, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def application(place: Path, name: str) -> None:
    """One that has a program, a variable, and what it runs itself."""
    root = place / "scif" / "apps" / name
    for directory in ("bin", "scif/env"):
        (root / directory).mkdir(parents=True)
    files = {
        "bin/greet": 'echo "$GREETING from $SCIF_APPNAME: $*"; exit 3',
        "scif/runscript": "greet by itself",
        "scif/env/90-environment.sh": "GREETING='good day'",
    }
    for path, text in files.items():
        (root / path).write_text(f"#!/bin/sh\n{text}\n")
        (root / path).chmod(0o755)


def test_a_program_of_an_application_has_its_files_and_variables(tmp_path: Path) -> None:
    """Words are its program and arguments as they are; without any it is what the application itself runs."""
    application(tmp_path, "one")
    assert (3, "good day from one: it's $me\n", "") == said(tmp_path, "one", "greet", "it's $me")
    assert (3, "good day from one: by itself\n", "") == said(tmp_path, "one")


def test_an_application_that_is_not_there_is_named(tmp_path: Path) -> None:
    """As the shell says of a program."""
    code, _, error = said(tmp_path, "none")
    assert code == 127
    assert "no application none" in error
