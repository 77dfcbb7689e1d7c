"""The bus's driver without its own layer over JetStream."""

import re
import subprocess
import sys
from pathlib import Path

from nats.aio import client
from nats.js.api import Header as Theirs

from kettle.bus.nats_driver import Header

_TYPES = {
    "JetStreamContext",
    "JetStreamManager",
}  # what the client hands out where it is asked for such, which we do not

_AFTERWARDS = """
import sys
import kettle.bus.nats_driver
assert "nats.js" not in sys.modules and "aiohttp" not in sys.modules
from nats.aio import client
mine = client.nats.js.api.Header
import nats.js, aiohttp
assert mine is kettle.bus.nats_driver.Header
assert client.nats.js.api.Header is nats.js.api.Header is not mine
assert nats.js.JetStreamContext
"""


def test_the_headers_are_those_of_the_driver() -> None:
    """What stands in the place of the driver's names has the same values."""
    assert {each.name: Theirs[each.name].value for each in Header} == {
        each.name: each.value for each in Header
    }


def test_the_client_needs_no_more() -> None:
    """Another version of the driver that asks for more is noticed here, and not by a message with headers."""
    asked = set(re.findall(r"\bnats\.js\.([\w.]+)", Path(client.__file__).read_text()))
    needed = {name for name in asked if name not in _TYPES}
    assert {f"api.Header.{name}" for name in Header.__members__} == {
        name.removesuffix(".value") for name in needed
    }


def test_others_have_the_whole_driver() -> None:
    """Who imports `nats.js` or aiohttp after us gets the real ones, and then so does the client."""
    ran = subprocess.run(
        [sys.executable, "-P", "-c", _AFTERWARDS], capture_output=True, text=True, check=False, timeout=60
    )
    assert (0, "") == (ran.returncode, ran.stderr)
