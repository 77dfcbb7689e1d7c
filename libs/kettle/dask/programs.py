"""
What the programs of schedulers and workers have in common: how they are started, and how they are ended.
"""

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

from kettle.dask.job_membership import JobMembership
from kettle.dask.membership import Membership, SharedDirectory


def parser_of(program: str, description: str | None) -> argparse.ArgumentParser:
    """With the options that both have."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=description)
    parser.add_argument(
        "--shared",
        type=Path,
        metavar="DIRECTORY",
        help="the files by which the programs of a cluster that has no session find and believe each other",
    )
    parser.add_argument("--session", default="", metavar="ID", help="for those who look at processes")
    return parser


async def membership_of(options: argparse.Namespace) -> Membership:
    """
    What this program belongs to.

    Raises:
        CredentialsError: its certificate cannot be had.
    """
    if options.shared is not None:
        return SharedDirectory(options.shared)
    return await JobMembership.of_job(os.environ)


def complain(program: str, message: object) -> None:
    """Onto standard error, which is a file of the job."""
    sys.stderr.write(f"{program}: {message}\n")
    sys.stderr.flush()


def set_at_signals(end: asyncio.Event) -> None:
    """When the job is vacated or removed (SIGTERM), or somebody presses Ctrl-C."""
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
