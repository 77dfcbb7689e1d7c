"""Kettle as people install it: the wheel of a release, by pip, into an environment that has nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kettle import VERSION

LONG = "KETTLE_TEST_LONG"
WITHIN_S = 900.0
JOBS = """\
executable = /bin/sh
transfer_executable = false
arguments = "-c 'echo $(Process)'"
output = out.$(Process)
request_memory = 16
queue 4
"""


def said(*words: str, cwd: Path, **environ: str) -> str:
    """What a program prints that has to succeed, without anything of this tree's environment."""
    clean = {"PATH": os.defpath, "HOME": str(cwd), "LANG": "C.UTF-8", **environ}
    done = subprocess.run(
        words, cwd=cwd, env=clean, capture_output=True, text=True, timeout=WITHIN_S, check=False
    )
    assert 0 == done.returncode, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(
    LONG not in os.environ, reason=f"it takes minutes: a wheel and an environment ({LONG}=1 makes them)"
)
def test_a_pool_runs_from_an_installed_wheel(top: Path, tmp_path: Path) -> None:
    """
    The wheel needs nothing of the tree: `pip install` with the servers of a personal pool, and jobs bring back what they printed.
    """
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=top, check=True, timeout=WITHIN_S, stdout=subprocess.DEVNULL)
    (wheel,) = tmp_path.glob("*.whl")
    assert f"kettle-{VERSION}-py3-none-any.whl" == wheel.name
    place = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True, timeout=WITHIN_S)
    # What pip is told of its index on this machine it is told here; the packages are those of the lock.
    words = [str(place / "bin" / "pip"), "--quiet", "--disable-pip-version-check", "install"]
    lock = ["--constraint", str(unhashed(top / "requirements" / "run.txt", tmp_path))]
    subprocess.run([*words, *lock, f"{wheel}[embedded,fast]"], check=True, timeout=WITHIN_S, cwd=tmp_path)
    subprocess.run([str(place / "bin" / "pip"), "check"], check=True, timeout=WITHIN_S, cwd=tmp_path)

    kettle, home = str(place / "bin" / "kettle"), str(tmp_path / "pool")
    assert f"kettle {VERSION}" in said(kettle, "version", cwd=tmp_path)
    (tmp_path / "jobs.sub").write_text(JOBS)
    try:
        said(kettle, "up", "--home", home, cwd=tmp_path)
        submitted = said(kettle, "submit", "jobs.sub", cwd=tmp_path, KETTLE_HOME=home)
        cluster = submitted.split(" cluster ")[1].split(".")[0].strip()
        said(kettle, "wait", cluster, cwd=tmp_path, KETTLE_HOME=home)
    finally:
        said(kettle, "down", "--home", home, cwd=tmp_path)
    assert [f"{number}\n" for number in range(4)] == [
        (tmp_path / f"out.{number}").read_text() for number in range(4)
    ]


def unhashed(lock: Path, place: Path) -> Path:
    """A lock as constraints, which pip does not take with hashes where the wheel itself has none."""
    lines = [line.split(" \\")[0] for line in lock.read_text().splitlines() if "==" in line]
    made = place / "constraints.txt"
    made.write_text("\n".join(line for line in lines if not line.lstrip().startswith("--hash")) + "\n")
    return made
