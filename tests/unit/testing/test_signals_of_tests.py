"""What a test sends to the services of its pool."""

import subprocess
from pathlib import Path

import msgspec
import pytest

from kettle.pool import DaemonState, MasterState
from kettle.runtime import make_lifeline
from kettle.testing.throwaway_pool import ThrowawayPool


def test_a_signal_that_reaches_nobody_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number that the state names is another process's by now, which gets nothing."""
    lifeline = make_lifeline()
    pool = ThrowawayPool(tmp_path, environ={}, settings={}, lifeline=lifeline)
    bystander = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        # Of a master that is not above it.
        daemon = DaemonState(name="iam", status="running", pid=bystander.pid)
        state = MasterState(pool="p", pool_id="i", pid=bystander.pid, started=0.0, daemons=(daemon,))
        monkeypatch.setattr(ThrowawayPool, "state", state)
        with pytest.raises(
            ProcessLookupError, match=f"iam, {bystander.pid} by its master's word, has not got"
        ):
            pool.kill("iam")
        assert bystander.poll() is None
        gone = msgspec.structs.replace(daemon, pid=0)
        monkeypatch.setattr(ThrowawayPool, "state", msgspec.structs.replace(state, daemons=(gone,)))
        assert 0 == pool.kill("iam")
    finally:
        bystander.kill()
        bystander.wait()
        lifeline.close()
