"""What the suites of batch systems and of providers of machines share."""

from collections.abc import Generator

import pytest

from kettle.testing.servers.slurm import SlurmCluster, no_slurm, slurm


@pytest.fixture(scope="module")
def cluster() -> Generator[SlurmCluster]:
    """A Slurm of their own, where there is one to be started."""
    if why := no_slurm():
        pytest.skip(why)
    with slurm() as made:
        yield made
