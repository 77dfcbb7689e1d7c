"""`kettle what-if`: a period of the log, read and played with other rules."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from kettle.runtime.settings_problems import SettingsError
from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.log.databases import ShardLocation, places
from kettle_services.cli.output.progress_bars import Bar
from kettle_services.negotiator.settings import NegotiatorSettings
from kettle_services.simulator.comparison import WhatIf, compare
from kettle_services.simulator.domain.clock import US
from kettle_services.simulator.domain.period import Period
from kettle_services.simulator.domain.recording import KINDS, Recording
from kettle_services.simulator.garbage import seldom_collected
from kettle_services.simulator.what_if_file import WORKLIFE, Change, ChangeError, played, read, rules
from kettle_wire.events import UnknownEventError

_OFTEN: Final = 256
_STEPS: Final = 5_000
"""So many cycles are played at most in a period of which nobody says how fine it is to be."""
_FINEST: Final = US // 10


class _Schedd(msgspec.Struct, frozen=True):
    claim_worklife: float = WORKLIFE
    significant_attributes: tuple[str, ...] = ()


class _Configured(msgspec.Struct, frozen=True):
    schedd: _Schedd = _Schedd()


class WhatIfQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wants to know; times in microseconds."""

    home: Path
    since: int
    until: int
    change: Path
    settings: Path | None = None
    """What the pool went by, if not its settings of now."""
    step: int | None = None
    patience: float = 30.0


def change_of(asked: WhatIfQuestion) -> tuple[Change, Change]:
    """
    What the pool goes by, and what it would; nothing is read of the log for it.

    Raises:
        UsageError: one of the files cannot be used.
    """
    base = own_settings(asked.home, asked.settings)
    try:
        return base, read(asked.change, base.settings, worklife=base.worklife)
    except ChangeError as error:
        raise UsageError(str(error)) from error


def own_settings(home: Path, settings: Path | None = None) -> Change:
    """
    What the pool goes by, according to its own file or another one.

    Raises:
        UsageError: the file cannot be used.
    """
    path = settings or Path(os.environ.get("KETTLE_CONFIG") or home / "kettle.toml")
    environ = {name: value for name, value in os.environ.items() if name.startswith("KETTLE_NEGOTIATOR_")}
    environ["KETTLE_HOME"] = str(home)  # otherwise it would use the caller's home
    try:
        there = path.is_file() or settings is not None
        base = NegotiatorSettings.load("negotiator", environ=environ, toml_path=path if there else None)
        known = msgspec.toml.decode(path.read_bytes(), type=_Configured) if there else _Configured()
    except (SettingsError, msgspec.MsgspecError, OSError) as error:
        raise UsageError(f"the pool's own settings cannot be used: {error}") from error
    significant = list(known.schedd.significant_attributes)
    return Change(settings=base, worklife=known.schedd.claim_worklife, significant=significant)


async def period_of(asked: WhatIfQuestion, significant: Sequence[str], bar: Bar) -> Period:
    """
    The period, from the log alone; `significant` are attributes by which schedds distinguish jobs besides the usual
    ones.

    Raises:
        CommandError: an event of it cannot be read, or nothing was submitted.
    """
    times = [(asked.since, asked.until)]
    return (await periods_of(asked.home, times, significant, bar, patience=asked.patience))[0]


async def periods_of(
    home: Path, times: Sequence[tuple[int, int]], significant: Sequence[str], bar: Bar, *, patience: float
) -> list[Period]:
    """
    Several periods by their beginnings and ends, of one reading of the log.

    Raises:
        CommandError: an event of it cannot be read.
    """
    async with places(home, patience=patience) as found:
        named = [place for place in found.every if place.shard.partition(".")[0] in KINDS]
        shards = [place.shard for place in named]
        recordings = [Recording(since, until, shards, significant=significant) for since, until in times]
        with seldom_collected():
            for place in named:
                await _read(place, recordings, bar)
            return [recording.period() for recording in recordings]


async def _read(place: ShardLocation, recordings: Sequence[Recording], bar: Bar) -> None:
    last = place.tenure.frame
    async for frame in place.log.read(place.shard, until=last):
        try:
            for recording in recordings:
                recording.feed(frame)
        except UnknownEventError as error:
            raise CommandError(f"{place.shard}, frame {frame.number}: {error}") from error
        if frame.number % _OFTEN == 0:
            bar(place.shard, frame.number, last)


def answer(asked: WhatIfQuestion, period: Period, base: Change, changed: Change, bar: Bar) -> WhatIf:
    """
    Play the period twice.

    Raises:
        UsageError: a machine that is to be copied is not there.
    """
    for one in changed.machines.add:
        if one.like and one.like not in period.machines:
            there = ", ".join(sorted(period.machines)[:5]) or "none"
            raise UsageError(
                f"{asked.change}: machines.add: there was no machine {one.like}; there are: {there}"
            )
    whole = asked.until - asked.since
    minutes = max(1, whole // US // 60)

    def watch(name: str, now: int) -> None:
        bar(name, (now - asked.since) // US // 60, minutes)

    return compare(
        period,
        rules(base.settings, worklife=base.worklife, factors={}),
        played(period, changed),
        rules(changed.settings, worklife=changed.worklife, factors=changed.factors),
        changes=changed.sentences,
        step=asked.step or step_of(whole),
        watch=[lambda now: watch("without the change", now), lambda now: watch("with it", now)],
    )


def step_of(whole: int) -> int:
    """Between two cycles of a period of so many microseconds of which nobody says how fine it is to be."""
    return max(_FINEST, whole // _STEPS)


def nobody_of(found: WhatIf, factors: Sequence[str]) -> list[str]:
    """Submitters for whom a factor is given and who had neither jobs nor claims."""
    known = {one.name for one in found.submitters}
    return [name for name in factors if name not in known and not name.startswith("<")]
