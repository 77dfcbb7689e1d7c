"""
One check of the whole configuration: all services, the file, the variables, each expression, what must fit together.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from kettle.runtime import Settings, SettingsError
from kettle.runtime.expression_types import unknown_attributes
from kettle.runtime.settings import config_path
from kettle.runtime.settings_problems import Problem
from kettle.submit.known_attributes import KnownAttributes
from kettle.terminal.nearest_names import did_you_mean
from kettle_services.cli.access.site import of_settings
from kettle_services.cli.configuration.known_attributes import made_by
from kettle_services.cli.configuration.services import MASTER, DaemonReading, of_host
from kettle_services.schedd.settings import ScheddSettings

_ADS: Final[Mapping[str, str]] = {
    "startd": "update_interval",
    "schedd": "ad_interval",
    "negotiator": "ad_interval",
    "master": "update_interval",
}
"""The setting of each service that says how often it repeats its ads."""
_PROGRAMS: Final = ("backfill_command", "discovery", "linux_kernel_tuning_script")
_PLUGINS: Final = ("transfer_plugins",)
_FILES: Final = (
    "container_auth_file",
    "store_credentials",
    "store_ca",
    "nats_credentials",
    "nats_ca",
    "nats_certificate",
    "nats_key",
    "http_certificate",
    "http_key",
    "http_client_ca",
)


def check(environ: Mapping[str, str], path: Path | None = None) -> list[Problem]:
    """
    All that is wrong with the configuration of this host, refusals first; empty: it can be used.

    Without a path the file is the one that the environment leads to.
    """
    try:
        found = of_host(environ, path)
    except SettingsError as error:
        return list(error.problems)
    problems = [problem for each in found for problem in each.reading.problems]
    whole = {each.daemon: each.reading.settings() for each in found if not each.reading.problems}
    problems += _warnings(found, whole)
    if MASTER in whole:
        problems += _access(whole[MASTER], path or config_path(environ))
    # what all services have is wrong for each of them
    distinct = {(each.where, each.sentence): each for each in problems}
    return sorted(distinct.values(), key=lambda problem: problem.warning)


def _access(settings: Settings, path: Path | None) -> Iterator[Problem]:
    """What is wrong with the files of [authorization], and what looks so in its lists."""
    for finding in of_settings(settings.authorization, path).findings:
        yield Problem(str(finding.place), finding.sentence, finding.warning)


def _warnings(found: Sequence[DaemonReading], whole: Mapping[str, Settings]) -> Iterator[Problem]:
    known = KnownAttributes(name for settings in whole.values() for name in made_by(settings))
    for each in found:
        if not each.reading.problems:
            yield from _strangers(each, known)
            yield from _missing_files(each, whole[each.daemon])
    yield from _too_seldom(found, whole)


def _strangers(daemon: DaemonReading, known: KnownAttributes) -> Iterator[Problem]:
    """Attributes that no ad of a pool has."""
    for given, expression in daemon.reading.expressions():
        for name in unknown_attributes(expression.text, known):
            sentence = f"no ad of a job or a machine is known to have {name}{did_you_mean(name, known.names)}"
            yield Problem(given.where, sentence, warning=True)


def _missing_files(daemon: DaemonReading, settings: Settings) -> Iterator[Problem]:
    """Programs and files that are not there; they may come before they are needed."""
    for name, given in daemon.reading.given.items():
        for path in _paths(name, getattr(settings, name, None)):
            if path.is_absolute() and not path.exists():
                yield Problem(given.where, f"there is no {path} on this machine", warning=True)


def _paths(name: str, value: object) -> list[Path]:
    """The paths in the value of a setting: of a program that is the first word."""
    if isinstance(value, str):
        return [Path(value)] if name in _FILES else []
    words = [str(each) for each in cast("list[object]", value)] if isinstance(value, list | tuple) else []
    return [Path(word) for word in (words[:1] if name in _PROGRAMS else words if name in _PLUGINS else ())]


def _too_seldom(found: Sequence[DaemonReading], whole: Mapping[str, Settings]) -> Iterator[Problem]:
    """
    What is repeated more seldom than the other side forgets it comes and goes: ads, and the leases of claims.
    """
    lifetime = getattr(whole.get("collector"), "classad_lifetime", math.inf)
    for each in found:
        settings, role = whole.get(each.daemon), each.reading.role
        every = getattr(settings, _ADS.get(role, ""), 0.0)
        if every >= lifetime:
            sentence = f"ads are repeated after {every:g} s, and the collector forgets them after {lifetime:g} s (its classad_lifetime)"
            yield Problem(_where(each, _ADS[role]), sentence, warning=True)
        if isinstance(settings, ScheddSettings) and settings.lease <= settings.alive_interval:
            sentence = f"claims are renewed after {settings.alive_interval:g} s (alive_interval), and end before that"
            yield Problem(_where(each, "lease"), sentence, warning=True)


def _where(daemon: DaemonReading, name: str) -> str:
    given = daemon.reading.given.get(name)
    return given.where if given else f"[{daemon.reading.role}] {name}"
