"""Test modules as pytest rewrites them, made by all workers together instead of by each."""

# pyright: reportPrivateUsage=false

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion import rewrite


def rewrite_share(config: pytest.Config, worker: dict[str, Any], tests: Path) -> None:
    """
    Rewrite this worker's share of the test modules that have not been rewritten, and leave them where pytest looks.

    In a fresh clone each worker of pytest-xdist would rewrite all of them, at the same time and in the same order: that
    takes nine seconds of a core, as long as the rest of a collection and more.  `worker` is what pytest-xdist has told it.
    """
    number, count = int(worker["workerid"].removeprefix("gw")), int(worker["workercount"])
    modules = sorted({*tests.rglob("test_*.py"), *tests.rglob("conftest.py")})
    for module in modules[number::count]:
        kept = rewrite.get_cache_dir(module) / (module.stem + rewrite.PYC_TAIL)
        if kept.exists() and kept.stat().st_mtime > module.stat().st_mtime:
            continue
        with suppress(SyntaxError):  # which the collection reports
            source_hash, code = rewrite._rewrite_test(module, config)
            if rewrite.try_makedirs(kept.parent):
                rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source_hash, kept)
