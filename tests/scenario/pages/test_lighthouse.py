"""Pages as Lighthouse judges them, in the browser that all these tests have."""

import json
import logging
import os
import shutil
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from tests.scenario.client_environments import program_of_node

from kettle.client import select
from kettle.testing.commands.running import execute
from kettle.testing.throwaway_pool import ThrowawayPool

from .browser import PROGRAMS, Looks

pytestmark = [pytest.mark.scenario, pytest.mark.embedded, pytest.mark.asyncio(loop_scope="session")]

LIGHTHOUSE: Final = "lighthouse@12.2.3"
ROUNDS: Final = 3
LOADED_MS: Final = 15_000
"""A page whose stream of changes is open never has a quiet network: it is looked at after so long."""
WITHIN_S: Final = 300.0
FLAGS: Final = "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage"
BARS: Final = {"performance": 95, "accessibility": 100}
PERFECT: Final = 0.9
"""The score of an audit from which on Lighthouse itself calls it good."""
_log: Final = logging.getLogger(__name__)


class Judged(msgspec.Struct, frozen=True):
    """What Lighthouse says of a page, as somebody sees it with a telephone over a slow line."""

    scores: dict[str, float]
    """Of each kind, of 100."""
    found: dict[str, str]
    """What is not as it should be, by its audit."""

    @property
    def is_below(self) -> bool:
        """Whether a score is less than it must be."""
        return any(self.scores[name] < bar for name, bar in BARS.items())

    @property
    def least(self) -> float:
        """How far the worst score is from its bar."""
        return min(self.scores[name] - bar for name, bar in BARS.items())


async def judged(program: str, url: str, token: str, directory: Path) -> Judged:
    """Have Lighthouse look at a page once."""
    report = directory / "report.json"
    headers = directory / "headers.json"
    headers.write_text(json.dumps({"Authorization": f"Bearer {token}"}))
    words = [program, url, "--quiet", f"--only-categories={','.join(BARS)}", f"--chrome-flags={FLAGS}"]
    words += [
        f"--max-wait-for-load={LOADED_MS}",
        "--output=json",
        f"--output-path={report}",
        f"--extra-headers={headers}",
    ]
    chromium = next(filter(None, map(shutil.which, PROGRAMS)))
    environ = {**os.environ, "CHROME_PATH": str(chromium)}
    said = await execute(words, directory, environ, within_s=WITHIN_S)
    assert 0 == said.status, said
    found: dict[str, Any] = json.loads(report.read_bytes())
    assert "runtimeError" not in found, found["runtimeError"]
    return Judged(
        {name: round(each["score"] * 100) for name, each in found["categories"].items()},
        {
            name: each.get("displayValue") or each["title"]
            for name, each in found["audits"].items()
            if each["score"] is not None and each["score"] < PERFECT
        },
    )


async def test_lighthouse_finds_pages_quick_and_accessible(
    look: Looks, pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    Performance of 95 and accessibility of 100, the median of three rounds, on every kind of page that is looked at most.
    """
    program = await program_of_node(LIGHTHOUSE, "lighthouse", tmp_path)
    ended = (await pool.client.submit("executable = /bin/true\nqueue 3\n", cwd=tmp_path)).cluster
    await pool.client.wait(select(ended))
    text = "executable = /bin/sleep\narguments = 600\nqueue 60\n"
    cluster = (await pool.client.submit(text, cwd=tmp_path)).cluster
    token = (pool.home / "gateway" / "token").read_text().strip()
    below: dict[str, Judged] = {}
    for path in (
        "/",
        "/jobs",
        "/history",
        f"/jobs/{cluster}.0",
        f"/clusters/{cluster}",
        "/submit",
        "/machines",
        "/fairshare",
    ):
        rounds = [await judged(program, look.address + path, token, tmp_path) for _ in range(ROUNDS)]
        middle = sorted(rounds, key=lambda each: each.least)[ROUNDS // 2]
        _log.info("%s: %s", path, middle)
        if middle.is_below:
            below[path] = middle
    assert {} == below
