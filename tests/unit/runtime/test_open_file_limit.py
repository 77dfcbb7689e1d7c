import resource
import subprocess
import sys

import pytest

from kettle.runtime import open_file_limit

SCRIPT = """
import resource
before = resource.getrlimit(resource.RLIMIT_NOFILE)
from kettle.runtime import open_file_limit as open_files
open_files.allow_many()
print(*before, *open_files.INHERITED, *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def limits(soft: int, hard: int) -> tuple[list[int], ...]:
    """Soft and hard limits of a new process before, as they are remembered, and afterwards."""
    line = f"ulimit -Sn {soft} && ulimit -Hn {hard} && exec {sys.executable} -c '{SCRIPT}'"
    found = [int(word) for word in subprocess.check_output(["sh", "-c", line], text=True).split()]
    return found[:2], found[2:4], found[4:]


@pytest.mark.parametrize("hard", [300, 2000])
def test_a_service_takes_what_it_may(hard: int) -> None:
    if hard > resource.getrlimit(resource.RLIMIT_NOFILE)[1]:
        pytest.skip("this machine lets nobody open so many files")
    before, remembered, after = limits(256, hard)
    assert [256, hard] == before == remembered
    assert [min(hard, open_file_limit.ENOUGH), hard] == after


def test_nobody_loses_what_he_has() -> None:
    before, remembered, after = limits(256, 256)
    assert before == remembered == after
