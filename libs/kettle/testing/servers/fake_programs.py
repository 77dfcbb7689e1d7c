"""Programs that stand for those of a batch system, and the jobs that they start, which end with them."""

import os
import secrets
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from kettle.pool.processes import end_all, mark, of_pool
from kettle.testing.patience import PATIENCE_S


class FakePrograms:
    """
    Programs in a directory.  Leaving the context ends what they have started, jobs that nobody has removed as well.
    """

    def __init__(self, place: Path, variable: str) -> None:
        """`variable`: of the environment, by which the programs find `place`."""
        self.place: Final = place
        self._variable: Final = variable
        self._id: Final = f"fake{secrets.token_hex(6)}"

    @property
    def environment(self) -> dict[str, str]:
        """With which its commands are found; all that they start carries its mark."""
        path = f"{self.place / 'bin'}:{os.environ['PATH']}"
        return {"PATH": path, self._variable: str(self.place), **mark(self._id)}

    def running(self) -> list[str]:
        """The processes of its commands and of its jobs, as they were called."""
        return [each.command for each in of_pool(self._id, self.place)]

    def end_jobs(self) -> None:
        """End whatever it has started."""
        left = end_all(partial(of_pool, self._id, self.place), deadline_s=PATIENCE_S)
        assert not left, f"jobs of {self.place} cannot be ended: {left}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end_jobs()
