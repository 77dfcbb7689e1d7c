"""The reference implementation, if this machine has it: what ours are compared with."""

import importlib
import os
from importlib.util import find_spec
from typing import Any

import pytest

needed = pytest.mark.skipif(
    find_spec("htcondor2") is None, reason="the reference implementation is not installed"
)


def module(name: str) -> Any:
    """Its `htcondor2` or `classad2`; it wants a configuration when it is loaded."""
    os.environ.setdefault("CONDOR_CONFIG", "/dev/null")
    return importlib.import_module(name)
