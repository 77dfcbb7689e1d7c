"""The basic scenario once more, and machines that are processes, as an account that is not root."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kettle.embedded.binaries import nats_server

_UID = 65534
_WITHIN_S = 900.0


def reachable(path: Path) -> bool:
    """Whether every account can read a file or directory."""
    path = path.resolve()
    return path.exists() and all(parent.stat().st_mode & 0o001 for parent in path.parents)


def interpreter() -> Path | None:
    """A Python that every account can run: ours, or the system's of the same version."""
    system = Path("/usr/bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
    return next((found for found in (Path(sys.executable), system) if reachable(found)), None)


@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests run as an ordinary user already")
def test_basic_as_an_ordinary_user() -> None:
    """Whatever a person can do with a pool of root's, an ordinary user can do with one of their own."""
    tests = Path(__file__).parent
    paths = [Path(path) for path in sys.path if path.endswith(("-packages", "libs", "schemas", "services"))]
    python = interpreter()
    if python is None or not all(map(reachable, (tests, *paths))):
        pytest.skip("this checkout or its Python lies where an ordinary user cannot read it")
    home = Path(tempfile.mkdtemp(prefix="kettle-user-"))
    os.chown(home, _UID, _UID)
    drop = ["setpriv", f"--reuid={_UID}", f"--regid={_UID}", "--clear-groups", "--"]
    run = [str(python), "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={home / 'tmp'}"]
    try:
        done = subprocess.run(
            [*drop, *run, str(tests / "test_basic.py"), str(tests / "test_process_machines.py")],
            cwd=tests.parents[1],
            env={
                "HOME": str(home),
                "TMPDIR": str(home),
                "PATH": os.environ["PATH"],
                "PYTHONPATH": os.pathsep.join(map(str, paths)),
                "KETTLE_NATS_BIN": str(nats_server()),
            },
            capture_output=True,
            text=True,
            timeout=_WITHIN_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        shutil.rmtree(home)
