"""What a process that passes bytes on does with the memory of the pieces."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
from kettle.published.freed_memory import keep_freed_memory

if sys.argv[1] == "keep" and not keep_freed_memory():
    sys.exit(3)
SOURCE = memoryview(bytes(1 << 18))

def turn():
    return len(b"".join([bytes(SOURCE) for _ in range(4)]))

for _ in range(20):
    turn()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(100):
    turn()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def pages(word: str) -> int:
    said = subprocess.run([sys.executable, "-c", PROGRAM, word], capture_output=True, text=True, check=False)
    if said.returncode == 3:
        pytest.skip("this C library keeps what is freed as it likes")
    assert 0 == said.returncode, said.stderr
    return int(said.stdout)


def test_freed_memory_is_used_again() -> None:
    """100 MiB in pieces need no new page of the kernel, where they would have needed one for each 4 KiB."""
    assert pages("keep") < 1_000
    assert pages("leave") > 10_000
