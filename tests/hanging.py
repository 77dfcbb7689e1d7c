"""
The end of a test that hangs: it shows where every thread stands and ends the process, whose worker is replaced.

pytest's own option starts a thread for each test and waits for its end.  That is 0.6 ms of a core each, which is more than most
tests take, and where others want the cores it gives the turn away.  So the watch is begun again when it has become old.
"""

import faulthandler
import time
from typing import Final

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key

_SECONDS: Final = 300
_OLD_SECONDS: Final = 30


class Watch:
    """A plugin: each test ends within 300 s, or is ended 270 to 300 s after it began."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._begun = float("-inf")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self) -> None:
        if (now := time.monotonic()) - self._begun > _OLD_SECONDS:
            faulthandler.dump_traceback_later(
                _SECONDS, exit=True, file=self._config.stash[fault_handler_stderr_fd_key]
            )
            self._begun = now

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        faulthandler.cancel_dump_traceback_later()
