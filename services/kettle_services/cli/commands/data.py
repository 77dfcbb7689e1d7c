"""`kettle data`: see whether the files that jobs name by URL can be had, before jobs wait for them."""

import argparse
from pathlib import Path
from typing import Final

import msgspec

from kettle.client import Client, JobId, prepare, select
from kettle.client.explanations.moved_files import files_of
from kettle.terminal.quantities import counted, size
from kettle_services.cli.errors import UsageError
from kettle_services.cli.options import json_option, pool_options, with_pool
from kettle_services.cli.output.screen import Screen
from kettle_wire.events import JobHeld
from kettle_wire.moved_files import FileRecord

HELP: Final = """\
See whether the files that jobs name by URL can be had: from here, without fetching them, or by a job, which fetches them in a real
slot: with the rules and caches of its site, its network, and the tokens that jobs get.

examples:
  kettle data check root://eospublic.cern.ch//eos/opendata/file.root
  kettle data check https://data.example.org/a https://data.example.org/b --json
  kettle data check --as-job root://eospublic.cern.ch//eos/opendata/file.root
  kettle data check --as-job s3://bucket/object --append 'aws_access_key_id_file = id' --append 'aws_secret_access_key_file = key'
  kettle data check --as-job root://host//path --requirements 'SiteName == "T2_X"'

The exit status is 1 if one of them cannot be had.
"""
_TITLES: Final = ("URL", "SIZE", "SERVED BY", "TIME", "COMPARED")


class Checked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of it."""

    files: list[FileRecord]
    job: str = ""
    """That has fetched them."""
    held: str = ""
    """Why it was held."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    commands = parser.add_subparsers(dest="what", metavar="COMMAND", required=True)
    check = commands.add_parser("check", help="see whether files can be fetched")
    check.add_argument("urls", nargs="+", metavar="URL", help="of a file")
    check.add_argument("--as-job", action="store_true", help="fetch them by a job, in a slot of the pool")
    check.add_argument(
        "--requirements", default="", metavar="EXPR", help="in a slot for which this is true (with --as-job)"
    )
    check.add_argument(
        "--append",
        action="append",
        default=[],
        metavar="COMMAND",
        help="a command of the job's description; may be repeated (with --as-job)",
    )
    json_option(check)
    pool_options(check)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Look, and tell."""
    if not arguments.as_job and (arguments.append or arguments.requirements):
        raise UsageError("--append and --requirements are of a job: give --as-job too")
    checked = _by_job(arguments, screen) if arguments.as_job else _from_here(arguments.urls)
    if screen.as_json:
        screen.json(msgspec.to_builtins(checked))
    else:
        _show(checked, screen)
    return int(bool(checked.held) or any(each.error for each in checked.files))


def _from_here(urls: list[str]) -> Checked:
    from kettle.transfer.preflight import look  # each command pays for its own imports

    return Checked(files=[look(url) for url in urls])


def _by_job(arguments: argparse.Namespace, screen: Screen) -> Checked:
    """Submit a job that does nothing but fetch them, and read its record; it does not stay in the queue."""
    for url in arguments.urls:
        if "," in url or "\n" in url or "://" not in url:
            raise UsageError(f"'{url}' cannot be an input file of a job by URL: write METHOD://HOST/PATH")
    lines = [
        "executable = /bin/true",
        "transfer_executable = false",
        f"transfer_input_files = {', '.join(arguments.urls)}",
        'transfer_output_files = ""',
        "batch_name = kettle data check",
        *([f"requirements = {arguments.requirements}"] if arguments.requirements else []),
        *arguments.append,
        "queue",
    ]

    async def work(pool: Client) -> Checked:
        submitted = await pool.submit(prepare("\n".join(lines) + "\n", cwd=Path.cwd()))
        job = JobId(submitted.cluster, 0)
        screen.note(f"job {job} fetches {counted(len(arguments.urls), 'file')}")
        try:
            await pool.wait(select(submitted.cluster), through_hold=False)
            events = [each.event for each in await pool.events(job)]
        finally:  # also if somebody does not wait for it
            await pool.remove(select(submitted.cluster), reason="kettle data check is done")
        held = next((each.reason for each in events if isinstance(each, JobHeld)), "")
        attempts = files_of(events)
        return Checked(files=attempts[-1].moved.files if attempts else [], job=str(job), held=held)

    return with_pool(arguments, work)


def _show(checked: Checked, screen: Screen) -> None:
    rows = [
        (
            each.url,
            size(each.bytes / 1024),
            f"{each.source} {each.server}" if checked.job else each.server or "this machine",
            f"{each.seconds:.2f} s",
            f"{each.checksum}: {each.verdict}" if each.verdict else "-",
        )
        for each in checked.files
        if not each.error
    ]
    if rows:
        screen.table(_TITLES, rows, right=frozenset({"SIZE", "TIME"}))
    for each in checked.files:
        for tried in each.tries:
            screen.say(
                f"{each.url}: {tried.error or each.error} at {tried.server or 'this machine'}: {tried.why}."
            )
    if checked.held:
        screen.say(f"The job was held: {checked.held}")
    elif not checked.files:
        screen.say("The job has left no record of its files; see kettle events.")
