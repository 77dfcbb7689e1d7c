"""`kettle log roles`: the roles of the services in a database that a site runs itself."""

import argparse

from kettle.storage.service_roles import statements
from kettle_services.cli.output.screen import Screen


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the script."""
    for line in ("BEGIN;", *statements(arguments.database).splitlines(), "COMMIT;"):
        screen.say(line)
    return 0
