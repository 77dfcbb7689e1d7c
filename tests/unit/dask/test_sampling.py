"""How often workers look at themselves."""

# dask has no types:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnusedImport=false

from collections.abc import Iterator
from copy import deepcopy

import distributed  # noqa: F401  whose defaults are changed
import pytest
from dask import config

from kettle.dask.worker.sampling import sample_seldom

PROFILE = "distributed.worker.profile.interval"
TICK = "distributed.admin.tick.interval"


@pytest.fixture(autouse=True)
def configuration() -> Iterator[None]:
    """The configuration of this process is as it was afterwards."""
    values, defaults = deepcopy(config.config), list(config.defaults)
    yield
    config.config.clear()
    config.config.update(values)
    config.defaults[:] = defaults


def test_workers_sample_seldom_unless_somebody_says_otherwise() -> None:
    """What is configured holds, and Dask's defaults do not."""
    assert ["10ms", "20ms"] == [config.get(PROFILE), config.get(TICK)]
    config.set({TICK: "30ms"})
    sample_seldom()
    assert ["100ms", "30ms"] == [config.get(PROFILE), config.get(TICK)]
