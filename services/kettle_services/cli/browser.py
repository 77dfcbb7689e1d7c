"""A browser of this machine, and how it is led to an address that nobody else is to see."""

import os
import tempfile
import time
from html import escape
from pathlib import Path
from typing import Final

from kettle.auth.private_files import write_private
from kettle.retry.deadline import Deadline

_READ_S: Final = 10.0
"""After so long a browser has the page, also where the time of reading is not kept."""
_LOOK_S: Final = 0.05
_PAGE: Final = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Kettle</title>
<meta http-equiv="refresh" content="0; url={0}"><p><a href="{0}">Go on to the pages of the pool</a></p></html>
"""


def led_to(address: str) -> bool:
    """
    Whether a browser was started that goes to an address.

    Everybody on the machine sees the command line of a browser, so there is only the name of a page that leads on, which this
    account alone can read; the page is removed when it was read.
    """
    if not {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"} & os.environ.keys():
        return False
    import webbrowser  # 10 ms to import

    with tempfile.TemporaryDirectory(prefix="kettle-web-") as directory:
        page = write_private(Path(directory) / "login.html", _PAGE.format(escape(address)))
        written = page.stat().st_atime_ns
        if not webbrowser.open(page.as_uri()):
            return False
        deadline = Deadline(_READ_S)
        while page.stat().st_atime_ns == written and not deadline.passed:
            time.sleep(_LOOK_S)
    return True
