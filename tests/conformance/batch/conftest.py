"""What the tests of batch systems share."""

from collections.abc import Generator

import pytest
from tests.scenario.accounts import people


@pytest.fixture(scope="module")
def person() -> Generator[str]:
    """An ordinary account of this machine."""
    with people(1) as (made,):
        yield made.name
