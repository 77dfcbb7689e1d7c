"""`kettle ce apel`: a day's jobs as records for APEL."""

import argparse
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from kettle.client import Client, CommandRefusedError
from kettle.routes.apel import (
    ApelRecords,
    IdentityRule,
    MappingError,
    apel_records,
    batch_text,
    blah_text,
    read_identities,
)
from kettle.routes.apel_attempts import ended_runs, is_run_again, told_apart
from kettle_services.cli.classad.sources import text_of_file
from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.options import with_pool
from kettle_services.cli.output.screen import Screen
from kettle_wire.ads import Ad
from kettle_wire.jobs import JobId


def apel(arguments: argparse.Namespace, screen: Screen) -> int:
    """Write the files, or show what would be in them."""
    day = _day(arguments.day, datetime.now(UTC).date())
    rules = _rules(arguments.map)
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
    end = begin + timedelta(days=1)
    ads = with_pool(arguments, lambda client: runs_of(client, begin.timestamp(), end.timestamp()))
    records = apel_records(ads, rules)
    if screen.as_json:
        screen.json({"day": day.isoformat(), "jobs": records.jobs, "quarantined": records.quarantined})
        return 0
    for path, text in files_of(records, day, arguments.ce, Path(arguments.output)).items():
        screen.say(write_once(path, text))
    for each in records.quarantined:
        screen.note(f"quarantined: {each.id}: {each.reason}")
    return 0


async def runs_of(client: Client, since: float, until: float) -> list[Ad]:
    """The ads of jobs that left the queue in a span of time, one for each run of them."""
    found: list[Ad] = []
    for ad in await client.history(limit=0, since=since, until=until):
        if not is_run_again(ad):
            found.append(ad)
            continue
        job = JobId(int(str(ad["ClusterId"])), int(str(ad["ProcId"])))
        try:
            events = await client.events(job)
        except CommandRefusedError:  # it was another queue's, or is not remembered
            events = []
        found += told_apart(ad, ended_runs((each.at, each.event) for each in events))
    return found


def files_of(records: ApelRecords, day: date, ce_id: str, directory: Path) -> dict[Path, str]:
    """What is in the files of a day."""
    stamp = day.strftime("%Y%m%d")
    texts = {
        "batch": batch_text(records),
        "blah": blah_text(records, ce_id),
        "quarantine": "".join(f"{each.id}|{each.reason}\n" for each in records.quarantined),
    }
    return {directory / f"{kind}-{stamp}": text for kind, text in texts.items()}


def write_once(path: Path, text: str) -> str:
    """Whole or not at all; what is there stays."""
    count = text.count("\n")
    try:
        if path.exists():
            same = path.read_text(encoding="utf-8") == text
            return f"{path} was written before{'' if same else ', and differs: remove it to have it written again'}"
        stage = path.with_name(f".{path.name}.part")
        stage.write_text(text, encoding="utf-8")
        stage.rename(path)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from error
    return f"{path}: {count} job{'s' * (count != 1)}"


def _day(text: str, today: date) -> date:
    try:
        day = date.fromisoformat(text) if text else today - timedelta(days=1)
    except ValueError as error:
        raise UsageError(f"'{text}' is no day: write it as {today.isoformat()}") from error
    if day >= today:
        raise UsageError(f"{day.isoformat()} is not over: more jobs will leave the queue on it (UTC)")
    return day


def _rules(name: str) -> tuple[IdentityRule, ...]:
    try:
        return read_identities(text_of_file(name), name)
    except MappingError as error:
        raise UsageError(str(error)) from error
