"""The bus's driver without its web client."""

import subprocess
import sys

_AFTERWARDS = """
import sys
import kettle.bus.nats_driver
assert not any(name.partition(".")[0] == "aiohttp" for name in sys.modules)
import aiohttp
assert aiohttp.ClientSession
import nats.js
assert kettle.bus.nats_driver.Client().jetstream
assert nats.js.JetStreamContext
"""

_BEFORE = """
import aiohttp, sys
import kettle.bus.nats_driver
assert sys.modules["aiohttp"] is aiohttp
from nats.aio import transport
assert transport.aiohttp is aiohttp
"""


def _run(program: str) -> tuple[int, str]:
    ran = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    return ran.returncode, ran.stderr


def test_the_driver_does_without_the_web_client() -> None:
    """To nats-py it is optional; a module that imports it after us gets it, and all of nats-py is there."""
    assert (0, "") == _run(_AFTERWARDS)


def test_what_is_loaded_already_stays_as_it_is() -> None:
    """Nobody has it taken away."""
    assert (0, "") == _run(_BEFORE)
