"""
`python -m kettle_services.cli.configuration`: what is wrong with the configuration of this host, as JSON for its master.
"""

import os
import sys

import msgspec

from kettle_services.cli.configuration.check import check

if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(check(os.environ)))
    sys.exit(0)
