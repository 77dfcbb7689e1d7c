"""
`kettle log`: the event log itself.
"""

import argparse
from typing import Final

from kettle.cli.errors import CommandError
from kettle.cli.options import json_option, pool_options
from kettle.cli.screen import Screen

HELP: Final = """\
Audit the event log: positions and versions without gaps, and log, bus and projections agreeing with each other.

examples:
  kettle log check                  exit status 1 if anything is wrong
"""
