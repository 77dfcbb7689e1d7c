"""The package of a machine, built, and installed into a root of its own."""

import faulthandler
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from .local_images import TOP

pytestmark = pytest.mark.slow


def said(*words: str, within: float = 900, **environ: str) -> str:
    done = subprocess.run(
        words, env=os.environ | environ, capture_output=True, text=True, timeout=within, check=False
    )
    assert 0 == done.returncode, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of a distribution with what the package depends on and nothing else."""
    if "KETTLE_TEST_LONG" not in os.environ:
        pytest.skip("it takes minutes: KETTLE_TEST_LONG=1 builds the package")
    if os.geteuid() != 0 or shutil.which("mmdebstrap") is None:
        pytest.skip(
            "only root can start what is in another root, and mmdebstrap makes it (Debian package mmdebstrap)"
        )
    faulthandler.cancel_dump_traceback_later()  # of the test that is the first to ask for it
    archive = tmp_path_factory.mktemp("base") / "run.tar"
    said(str(TOP / "infra/images/make-base"), "run", str(archive), within=1800)
    return archive


@pytest.fixture
def root(base: Path, tmp_path: Path) -> Path:
    """A root of that distribution."""
    root = tmp_path / "root"
    root.mkdir()
    said("tar", "-xpf", str(base), "-C", str(root))
    return root


def runs_as_installed(root: Path, unit: str) -> None:
    """
    It runs as its unit calls it, from where its programs say that they are, and nobody but root can change it.
    """
    program = "/usr/bin/kettle"
    assert said("chroot", str(root), program, "version").startswith("kettle ")
    assert "/opt/kettle" in said("chroot", str(root), "head", "-n", "1", "/opt/kettle/bin/kettle")
    assert f"ExecStart={program} run master" in (root / unit).read_text()
    assert "" == said(
        "chroot", str(root), "find", "/opt/kettle", "/usr/bin/kettle", "-perm", "/022", "!", "-type", "l"
    )


def test_it_is_installed_and_runs(root: Path, tmp_path: Path) -> None:
    """Made with the distribution's Python, and taken by the distribution's own program."""
    said(str(TOP / "infra/packages/build-deb"), str(tmp_path))
    (package,) = tmp_path.glob("kettle-worker_*.deb")
    shutil.copy(package, root / "package.deb")
    said("chroot", str(root), "dpkg", "--install", "/package.deb")
    runs_as_installed(root, "lib/systemd/system/kettle-worker.service")
    leftover = f"grep -rlIF {tmp_path} /opt/kettle/bin /opt/kettle/pyvenv.cfg || true"
    assert "" == said("chroot", str(root), "sh", "-c", leftover)


def test_the_rpm_is_built_and_runs(root: Path, tmp_path: Path) -> None:
    """
    What rpmbuild makes says what it needs, and its files run from a root; the database of RPM is of that root alone.
    """
    if shutil.which("rpmbuild") is None:
        pytest.skip("rpmbuild is not installed (Debian: rpm)")
    places = ["--define", f"top {TOP}", "--define", f"_topdir {tmp_path}/rpm"]
    said("rpmbuild", "-bb", *places, str(TOP / "infra/packages/kettle-worker.spec"))
    (package,) = (tmp_path / "rpm").rglob("kettle-worker-*.rpm")
    needs = said("rpm", "--query", "--package", "--requires", str(package)).splitlines()
    assert {"python3 >= 3.11", "ca-certificates"} <= set(needs)
    assert str(tmp_path) not in said("rpm", "--query", "--package", "--scripts", "--list", str(package))
    # What it needs is there by packages of another kind, of which this database knows nothing.
    said("rpm", "--root", str(root), "--nodeps", "--install", str(package))
    runs_as_installed(root, "usr/lib/systemd/system/kettle-worker.service")
    assert "" == said("rpm", "--root", str(root), "--verify", "--nodeps", "kettle-worker")


def test_the_spec_is_one(top: Path) -> None:
    """The tool of RPM reads it, and finds the version of the package."""
    program = shutil.which("rpmspec")
    if program is None:
        pytest.skip("rpmspec is not installed (Debian: rpm)")
    spec = str(top / "infra/packages/kettle-worker.spec")
    version = said(program, "--query", "--queryformat", "%{VERSION}", "--define", f"top {top}", spec)
    assert f'version = "{version}"' in (top / "pyproject.toml").read_text()
