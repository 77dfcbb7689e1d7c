"""What the programs of schedulers and workers have in common: how they are started, and how they are ended."""

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from kettle.dask.membership import Membership, SharedDirectory


def parser_of(program: str, description: str | None) -> argparse.ArgumentParser:
    """With the options that both have."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=description)
    parser.add_argument(
        "--shared",
        type=Path,
        metavar="DIRECTORY",
        required=True,
        help="the files by which the programs of a cluster that has no session find and believe each other",
    )
    return parser


def membership_of(options: argparse.Namespace) -> Membership:
    """
    What this program belongs to.

    Raises:
        CredentialsError: its certificate cannot be had.
    """
    return SharedDirectory(options.shared)


def complain(program: str, message: object) -> None:
    """Onto standard error, which is a file of the job."""
    sys.stderr.write(f"{program}: {message}\n")
    sys.stderr.flush()


def set_at_signals(end: asyncio.Event) -> None:
    """When the job is vacated or removed (SIGTERM), or somebody presses Ctrl-C."""
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
