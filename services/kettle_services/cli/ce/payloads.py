"""`kettle ce payloads`, `kettle ce report`: what pilots run for others."""

import argparse
import time

from kettle.client import Client
from kettle.client.entrypoint import job_called
from kettle.client.jobs.selection import job_id
from kettle.routes.chain import chain_of
from kettle_services.cli.options import with_pool
from kettle_services.cli.output.screen import Screen
from kettle_wire.commands.payloads import PayloadsListed, PayloadsReported, ReportedPayload
from kettle_wire.jobs import JobId
from kettle_wire.payloads import Payload, PayloadEnd, PayloadReport


def payloads(arguments: argparse.Namespace, screen: Screen) -> int:
    """What runs now, or all that one pilot has run."""

    async def ask(client: Client) -> PayloadsListed:
        job = await _job(client, arguments.job) if arguments.job else None
        return await client.entrypoint.payloads(job, arguments.owner)

    found = with_pool(arguments, ask)
    if screen.as_json:
        screen.json(found)
        return 0
    if not found.payloads:
        screen.note("No pilot has reported any.")
        return 0
    rows = [
        (
            str(each.job),
            each.by,
            each.payload.name,
            each.payload.owner,
            each.payload.vo or "-",
            each.payload.host or "-",
            _moment(each.began),
            _end(each),
        )
        for each in found.payloads
    ]
    screen.table(("PILOT", "OF", "PAYLOAD", "FOR", "VO", "ON", "BEGAN", "ENDED"), rows)
    if found.left_out:
        screen.note(f"{found.left_out:,} older ones are left out: kettle log show has them.")
    return 0


def report(arguments: argparse.Namespace, screen: Screen) -> int:
    """Say that a payload has begun, or is over."""
    said = PayloadReport(over=[PayloadEnd(name=arguments.payload, exit_code=arguments.exit_code)])
    if not arguments.over:
        begun = Payload(
            name=arguments.payload,
            owner=arguments.owner,
            vo=arguments.vo,
            host=arguments.host,
            command=arguments.command,
        )
        said = PayloadReport(begun=[begun])

    async def tell(client: Client) -> PayloadsReported:
        return await client.entrypoint.report_payloads(await _job(client, arguments.job), said)

    done = with_pool(arguments, tell)
    if screen.as_json:
        screen.json(done)
    else:
        screen.say(f"The pilot runs {done.running} now.")
    return 0


async def _job(client: Client, name: str) -> JobId:
    return job_id(chain_of(await job_called(client, name)).id)


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _end(told: ReportedPayload) -> str:
    if told.ended is None:
        return "runs"
    how = "with the pilot" if told.with_pilot else "" if told.exit_code is None else f"code {told.exit_code}"
    return f"{_moment(told.ended)} {how}".rstrip()
