"""What is left of a container that was made and never started: only what it has mounted tells whose it is."""

import os
import signal
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kettle.execution.containers.runtimes.runtime import AREA
from kettle.execution.sandbox.directory import area_of
from kettle_services.startd.starters import orphan_cleanup


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a mount namespace")
@pytest.mark.parametrize("before", [False, True])
def test_a_process_that_has_the_containers_root_mounted_is_found(directory: Path, *, before: bool) -> None:
    """
    A container that was made and never started carries neither the job's account nor its environment; nor does one that a starter of
    an earlier version has made, within the sandbox.
    """
    sandbox = directory / "dir_claim_1.0_1"
    with mounted(sandbox, sandbox / ".container" / "root" if before else None) as process:
        threading.Thread(target=process.wait).start()
        assert orphan_cleanup.remove_remains(str(sandbox), None, None)

        assert -signal.SIGKILL == process.wait()
    assert [] == list(directory.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a mount namespace")
def test_what_another_pool_has_mounted_is_left_alone(directory: Path) -> None:
    """Two pools on a machine may have claims, and so sandboxes, of the same name."""
    ours, theirs = directory / "ours" / "dir_claim_1.0_1", directory / "theirs" / "dir_claim_1.0_1"
    ours.mkdir(parents=True)
    with mounted(theirs) as process:
        assert orphan_cleanup.remove_remains(str(ours), None, None)

        assert process.poll() is None
        process.kill()
    assert not ours.exists()


@contextmanager
def mounted(sandbox: Path, root: Path | None = None) -> Generator[subprocess.Popen[bytes]]:
    """
    A process in a mount namespace of its own, with part of what a sandbox's container has mounted there.
    """
    root = root or Path(area_of(str(sandbox)), AREA, "root")
    for path in (sandbox, root):
        path.mkdir(parents=True)
    text = 'mount --bind "$0" "$0" && cd / && echo up && exec sleep 9873'
    with subprocess.Popen(
        ["/usr/bin/unshare", "-m", "--", "/bin/sh", "-c", text, str(root)], env={}, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert b"up\n" == process.stdout.readline()
        yield process
