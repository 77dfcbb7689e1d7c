"""
What holds for every test: where a test lies says what it needs.
"""

from pathlib import Path

import hypothesis
import pytest

# Examples are searched, not timed: on a loaded machine a slow example is not a wrong one.
hypothesis.settings.register_profile("kettle", deadline=None)
hypothesis.settings.load_profile("kettle")

_TESTS = Path(__file__).parent
_NEEDS = {"integration": "embedded", "scenario": "scenario"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        kind = item.path.relative_to(_TESTS).parts[0] if item.path.is_relative_to(_TESTS) else ""
        if kind in _NEEDS:
            item.add_marker(_NEEDS[kind])
