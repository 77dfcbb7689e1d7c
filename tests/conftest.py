"""
What holds for every test: where a test lies says what it needs, and KETTLE_TEST_SERVERS what it runs on.
"""

import compileall
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import hypothesis
import pytest

from kettle.testing.servers import selection
from kettle.testing.servers.locations import NotHereError

# Examples are searched, not timed: on a loaded machine a slow example is not a wrong one.
hypothesis.settings.register_profile("kettle", deadline=None)
hypothesis.settings.load_profile("kettle")

_TESTS = Path(__file__).parent
_NEEDS = {"integration": "embedded", "scenario": "scenario"}
_ON_SERVERS = {"contract", "integration", "scenario"}


def pytest_configure(config: pytest.Config) -> None:
    try:
        selection.lane()
    except ValueError as error:
        raise pytest.UsageError(str(error)) from error
    if not hasattr(config, "workerinput"):  # once, not in each worker of pytest-xdist
        _compile()


def _compile() -> None:
    """
    Leave our modules' bytecode beside them, if that is possible.

    Pools start hundreds of processes. Each would compile what it imports where Python is told to write no bytecode,
    or where the account that a pool runs as may not: longer than all the rest of its start.
    """
    for root in ("libs", "schemas", "services"):
        compileall.compile_dir(_TESTS.parent / root, quiet=2)


@pytest.fixture(scope="session", autouse=True)
def lane() -> Iterator[None]:
    """The servers of the run, in a lane that has such."""
    with ExitStack() as stack:
        try:
            stack.enter_context(selection.opened())
        except NotHereError as error:
            pytest.skip(str(error))
        yield


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if (kind := _kind(item)) in _NEEDS:
            item.add_marker(_NEEDS[kind])
    if selection.servers_are_ours():
        return
    reasons = {
        "breaks_servers": f"breaks servers, and those of the lane {selection.lane()} are for all tests",
        "writes_credentials": f"admits another pool, and who is admitted by the servers of the lane {selection.lane()} is not ours to say",
    }
    for item in items:
        for marker, reason in reasons.items():
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))
    config.hook.pytest_deselected(items=[item for item in items if _kind(item) not in _ON_SERVERS])
    items[:] = [item for item in items if _kind(item) in _ON_SERVERS]


def _kind(item: pytest.Item) -> str:
    return item.path.relative_to(_TESTS).parts[0] if item.path.is_relative_to(_TESTS) else ""
