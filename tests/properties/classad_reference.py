"""
The reference implementation of ClassAds, in a process of its own: it may crash or hang on what we feed it.

Run as a program, this file is that process: each line of its input is a JSON list of cases, each line of its output
the list of their outcomes.
A case is the ads MY and TARGET (empty: none) and an expression; an outcome is the value on one line, or
PARSE_ERROR, or EVAL_FAIL.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

_SECONDS_PER_BATCH: Final = 120
CRASH: Final = "CRASH"
"""The outcome where the reference died or did not end."""


class Case(NamedTuple):
    """An expression and the ads in which it is evaluated, in new syntax; an empty text is no ad."""

    my: str
    target: str
    expression: str


class Reference:
    """Asks the reference; a context manager, because there is a process behind it."""

    def __init__(self) -> None:
        self._process = self._started()

    @staticmethod
    def _started() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"CONDOR_CONFIG": "ONLY_ENV", "TZ": "UTC", "LC_ALL": "C.UTF-8"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        flaw: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended()

    def _ended(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def outcomes(self, cases: Sequence[Case]) -> list[str]:
        """What comes of each case; the ones that kill the process are found by halving."""
        answer = self._asked(cases)
        if answer is not None:
            return answer
        self._ended()
        self._process = self._started()
        if len(cases) == 1:
            return [CRASH]
        middle = len(cases) // 2
        return self.outcomes(cases[:middle]) + self.outcomes(cases[middle:])

    def _asked(self, cases: Sequence[Case]) -> list[str] | None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(cases) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        return json.loads(line) if line.endswith("\n") else None


def _serve() -> None:
    # With htcondor2 the library follows HTCondor's semantics, without it its own strict ones.
    import_module("htcondor2")
    classad2: Any = import_module("classad2")  # it has no types

    def outcome(my: str, target: str, expression: str) -> str:
        try:
            mine, other = classad2.ClassAd(my or "[]"), classad2.ClassAd(target) if target else None
            # Only an expression fits in both places.
            alone, _ = (
                classad2.ClassAd(f"[e = {expression}\n]"),
                classad2.ClassAd(f"[e = {{{expression}\n}}]"),
            )
        except classad2.ClassAdException:
            return "PARSE_ERROR"
        try:
            return repr(alone.lookup("e").simplify(mine, other))
        except classad2.ClassAdException:
            return "EVAL_FAIL"

    for line in sys.stdin:
        signal.alarm(_SECONDS_PER_BATCH)
        sys.stdout.write(json.dumps([outcome(*case) for case in json.loads(line)]) + "\n")
        sys.stdout.flush()
        signal.alarm(0)


if __name__ == "__main__":
    _serve()
