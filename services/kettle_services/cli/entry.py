"""
What `kettle` on the command line starts with: a command that asks one question should take no longer than the question.
"""

from typing import NoReturn

from kettle.client.connections import short_process


def command() -> NoReturn:
    """Run the command that was typed, and end with its status."""
    short_process.defer_loading()
    from kettle_services.cli.__main__ import main

    short_process.resume_collection()
    short_process.exit_quickly(main())
