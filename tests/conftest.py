"""Rules for every test: the directory of a test says what it needs, and KETTLE_TEST_SERVERS where it runs."""

import compileall
import gc
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from kettle.command_server import asking
from kettle.testing import skips
from kettle.testing.servers import selection
from kettle.testing.servers.locations import NotHereError

# Examples are searched, not timed: on a loaded machine a slow example is not a wrong one, nor are slowly drawn ones.
# They are those of the last time, so that nobody who has changed nothing sees a failure; new ones are looked for on purpose, by
# `make test pytest_arguments=--hypothesis-profile=search`.  Since a run finds only what a change has broken, which breaks
# more than one example, it looks at fewer than a search does.
hypothesis.settings.register_profile(
    "kettle",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile(
    "search", hypothesis.settings.get_profile("kettle"), derandomize=False, max_examples=1000
)
hypothesis.settings.register_profile("quick", hypothesis.settings.get_profile("kettle"), max_examples=10)
hypothesis.settings.load_profile("kettle")

# A command of a test leaves no process behind; those of which a command server is the subject say otherwise.
os.environ[asking.VARIABLE] = "off"

_Report = TypeVar("_Report", pytest.TestReport, pytest.CollectReport)

_TESTS = Path(__file__).parent
_NEEDS = {"integration": "embedded", "scenario": "scenario"}
_ON_SERVERS = {"contract", "integration", "scenario"}


def pytest_configure(config: pytest.Config) -> None:
    try:
        selection.lane()
    except ValueError as error:
        raise pytest.UsageError(str(error)) from error
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker is None:  # once, not in each worker of pytest-xdist
        _compile()
    if config.getoption("--hypothesis-profile") != "search":
        _draw_from_no_modules()
    # Tests as pytest rewrites them are worth keeping, for the other workers and the next run: it takes seconds of a core.
    sys.dont_write_bytecode = False
    if worker is not None:
        from tests.rewriting import rewrite_share

        rewrite_share(config, worker, _TESTS)
    from tests.hanging import Watch

    config.pluginmanager.register(Watch(config))
    gc.disable()  # until all tests are collected: what is made until then stays


def _draw_from_no_modules() -> None:
    """
    Have Hypothesis draw no numbers and texts from the modules that a worker happens to have imported.

    What a property is tried with would depend on which other tests there are, and to take all modules apart costs each
    worker five seconds of a core.
    """
    name, nothing = "_get_local_constants", Constants()
    if not hasattr(providers, name):
        raise pytest.UsageError(
            f"Hypothesis has no {name} any more: tests/conftest.py has to find another way"
        )
    setattr(providers, name, lambda: nothing)


def _compile() -> None:
    """
    Leave our modules' bytecode beside them, if that is possible.

    Pools start hundreds of processes. Each would compile what it imports where Python is told to write no bytecode,
    or where the account that a pool runs as may not: longer than all the rest of its start.
    """
    for root in ("libs", "schemas", "services"):
        compileall.compile_dir(_TESTS.parent / root, quiet=2)


_ALLOWED_SKIPS = skips.allowed()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _judged((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _judged((yield))


def _judged(report: _Report) -> _Report:
    """A report, failed if it is of a skip that may not be."""
    if _ALLOWED_SKIPS is None or not report.skipped or hasattr(report, "wasxfail"):
        return report
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if why := skips.complaint(reason, _ALLOWED_SKIPS):
        report.outcome, report.longrepr = "failed", why
    return report


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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object | None:
    """Files in an order that keeps the cores busy, where tests of one file stay together."""
    if config.getoption("dist") != "loadfile":
        return None
    from tests.scheduling import FilesInTwoQueues

    return FilesInTwoQueues(config, log)


def pytest_collection_finish() -> None:
    """
    Leave what was collected out of all later looks for garbage.

    They would take a third of a second each, and they are many.
    """
    gc.freeze()
    gc.enable()


def _kind(item: pytest.Item) -> str:
    return item.path.relative_to(_TESTS).parts[0] if item.path.is_relative_to(_TESTS) else ""
