"""
The basic scenario once more, as an account that is not root.
"""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

_UID = 65534
_WITHIN_S = 240.0


def reachable(path: Path) -> bool:
    return all(parent.stat().st_mode & 0o001 for parent in (path, *path.parents) if parent.is_dir())


@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests run as an ordinary user already")
def test_basic_as_an_ordinary_user() -> None:
    """
    Whatever a person can do with a pool of root's, an ordinary user can do with one of their own.
    """
    tests = Path(__file__).parent
    top = tests.parents[1]
    if not (reachable(top) and reachable(Path(sys.executable))):
        pytest.skip("this checkout lies where an ordinary user cannot read it")
    try:
        pwd.getpwuid(_UID)
    except KeyError:
        pytest.skip("there is no account nobody")
    home = Path(tempfile.mkdtemp(prefix="kettle-user-"))
    os.chown(home, _UID, _UID)
    try:
        done = subprocess.run(
            [
                "setpriv",
                f"--reuid={_UID}",
                f"--regid={_UID}",
                "--clear-groups",
                "--",
                sys.executable,
                "-B",
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                f"--basetemp={home / 'tmp'}",
                str(tests / "test_basic.py"),
            ],
            cwd=top,
            env={"HOME": str(home), "PATH": os.environ["PATH"], "TMPDIR": str(home)},
            capture_output=True,
            text=True,
            timeout=_WITHIN_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        shutil.rmtree(home)
