"""What a site has said about who may do what, as its services read it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kettle.auth.mapping.access_lists import Entry, suspicions
from kettle.auth.mapping.findings import Finding
from kettle.auth.mapping.policy import AccessPolicy
from kettle.runtime import Settings, SettingsError, access_files
from kettle.runtime.authorization import TABLE, Authorization
from kettle.runtime.authorizer import SettingPlaces, access_lists
from kettle.runtime.settings import config_path
from kettle_services.cli.errors import CommandError


class SiteAccess(msgspec.Struct, frozen=True):
    """The policy of a site, and what is wrong with it."""

    policy: AccessPolicy
    findings: Sequence[Finding]


def read(
    environ: Mapping[str, str], *, service: str = "", maps: Sequence[Path] = (), rules: Path | None = None
) -> SiteAccess:
    """
    What the settings say, as one service would decide; `maps` and `rules` in the place of the files that they name.

    Raises:
        CommandError: the settings cannot be used.
    """
    try:
        said = Settings.load("cli", environ=environ).authorization
    except SettingsError as error:
        raise CommandError(f"the configuration cannot be used:\n{error}") from error
    return of_settings(said, config_path(environ), service=service, maps=maps, rules=rules)


def of_settings(
    said: Authorization,
    path: Path | None,
    *,
    service: str = "",
    maps: Sequence[Path] = (),
    rules: Path | None = None,
) -> SiteAccess:
    """What a table `[authorization]` in a file says; names of files in it begin at that file's directory."""
    places = SettingPlaces(path)
    own_maps, own_rules = access_files.named(said, path)
    files, findings = access_files.read(maps or own_maps, rules or own_rules)
    policy = AccessPolicy(
        domain=said.own_domain,
        rules=files.rules.rules,
        maps=files.maps,
        accounting_groups=files.rules.accounting_groups,
        bans=files.rules.bans,
        lists=access_lists(said, service, (), places),
    )
    return SiteAccess(policy, [*_of_lists(said, places), *findings])


def _of_lists(said: Authorization, places: SettingPlaces) -> list[Finding]:
    return [
        finding
        for kind, lists in (("allow", said.allow), ("deny", said.deny))
        for key, texts in lists.items()
        for text in texts
        for finding in suspicions(kind, key, Entry.read(text, places.place((TABLE, kind, key), text)))
    ]
