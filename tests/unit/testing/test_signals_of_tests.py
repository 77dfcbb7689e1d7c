"""What a test sends to the services of its pool."""

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from kettle.runtime import make_lifeline
from kettle.testing.throwaway_pool import ThrowawayPool


def test_a_signal_that_reaches_nobody_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number that the state names is another process's by now, which gets nothing."""
    lifeline = make_lifeline()
    pool = ThrowawayPool(tmp_path, environ={}, settings={}, lifeline=lifeline)
    bystander = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        daemon = SimpleNamespace(name="iam", pid=bystander.pid)
        state = SimpleNamespace(
            pid=bystander.pid, daemon=lambda _name: daemon
        )  # a master that is not above it
        monkeypatch.setattr(ThrowawayPool, "state", state)
        with pytest.raises(
            ProcessLookupError, match=f"iam, {bystander.pid} by its master's word, has not got"
        ):
            pool.kill("iam")
        assert bystander.poll() is None
        daemon.pid = 0
        assert 0 == pool.kill("iam")
    finally:
        bystander.kill()
        bystander.wait()
        lifeline.close()
