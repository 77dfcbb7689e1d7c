"""The package of a machine, built, and installed into a root of its own."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from .local_images import RUN_PACKAGES, TOP

pytestmark = pytest.mark.slow


def said(*words: str, within: float = 900, **environ: str) -> str:
    done = subprocess.run(
        words, env=os.environ | environ, capture_output=True, text=True, timeout=within, check=False
    )
    assert 0 == done.returncode, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def test_it_is_installed_and_runs(tmp_path: Path) -> None:
    """
    Made with the distribution's Python and installed into a root that has what it depends on and nothing else, it runs as its unit
    calls it, from where its programs say that they are.
    """
    if "KETTLE_TEST_LONG" not in os.environ:
        pytest.skip("it takes minutes: KETTLE_TEST_LONG=1 builds the package")
    if os.geteuid() != 0 or shutil.which("mmdebstrap") is None:
        pytest.skip(
            "only root can start what is in another root, and mmdebstrap makes it (Debian package mmdebstrap)"
        )
    said(str(TOP / "infra/packages/build-deb"), str(tmp_path))
    (package,) = tmp_path.glob("kettle-worker_*.deb")
    root = tmp_path / "root"
    said("mmdebstrap", "--variant=essential", f"--include={RUN_PACKAGES}", "bookworm", str(root))
    shutil.copy(package, root / "package.deb")
    said("chroot", str(root), "dpkg", "--install", "/package.deb")

    program = "/usr/bin/kettle"
    assert said("chroot", str(root), program, "version").startswith("kettle ")
    assert "/opt/kettle" in said("chroot", str(root), "head", "-n", "1", "/opt/kettle/bin/kettle")
    unit = (root / "lib/systemd/system/kettle-worker.service").read_text()
    assert f"ExecStart={program} run master" in unit
    assert "" == said(
        "chroot", str(root), "find", "/opt/kettle", "/usr/bin/kettle", "-perm", "/022", "!", "-type", "l"
    )
    assert str(tmp_path) not in said(
        "chroot", str(root), "sh", "-c", "cat /opt/kettle/bin/* /opt/kettle/pyvenv.cfg"
    )


def test_the_spec_is_one(top: Path) -> None:
    """The tool of RPM reads it, and finds the version of the package."""
    program = shutil.which("rpmspec")
    if program is None:
        pytest.skip("rpmspec is not installed (Debian: rpm)")
    spec = str(top / "infra/packages/kettle-worker.spec")
    version = said(program, "--query", "--queryformat", "%{VERSION}", "--define", f"top {top}", spec)
    assert f'version = "{version}"' in (top / "pyproject.toml").read_text()
