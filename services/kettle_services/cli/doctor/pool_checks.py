"""The pool: its daemons and hosts, how far its tables are, certificates, listeners, and its configuration."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from kettle.terminal.quantities import duration
from kettle_services.cli.doctor.findings import Finding, good, note, problem, warning
from kettle_services.cli.doctor.server_checks import clock_finding

_OFTEN: Final = 5
"""Starts of a daemon after which somebody should look."""
_SOON_DAYS: Final = 30
_BEHIND_S: Final = 60.0
_AD_S: Final = 5.0
"""So long an ad may be on its way, in whole seconds: a clock that differs by less is not told from that."""


class DaemonFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One daemon of this host, as its master tells."""

    name: str
    status: str
    starts: int = 0
    hangs: int = 0
    last_exit: str = ""


class HostAd(msgspec.Struct, frozen=True, kw_only=True):
    """One host, as the ad of its master tells."""

    name: str
    version: str = ""
    installed: str = ""
    """A version that is installed and does not run yet."""
    said: float = 0.0
    """When it said so, by its own clock."""
    heard: float = 0.0
    """When the pool heard it, by the collector's clock."""


class LagFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Where one projection is in one shard."""

    projection: str
    shard: str
    frames: int
    seconds: float
    error: str = ""


class CertificateFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A certificate that somebody shows, or is trusted by."""

    path: str
    ends: float = 0.0
    """Seconds since the epoch."""
    error: str = ""


class ListenerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A port that the settings name."""

    what: str
    address: str
    listens: bool
    wanted: bool
    """Whether what listens there runs here now."""


class PoolFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of the pool."""

    home: str
    runs: bool
    version: str
    """Of this program."""
    master_version: str = ""
    daemons: Sequence[DaemonFacts] = ()
    hosts: Sequence[HostAd] = ()
    lags: Sequence[LagFacts] = ()
    certificates: Sequence[CertificateFacts] = ()
    listeners: Sequence[ListenerFacts] = ()
    configuration: Sequence[tuple[str, bool]] = ()
    """What `kettle config check` finds: a sentence, and whether it is a warning only."""
    not_used_yet: Sequence[str] = ()
    """Settings that are not those with which the daemons run."""
    fingerprints: Mapping[str, str] = {}
    """By file of the configuration, the beginning of its SHA-256."""


def pool_findings(facts: PoolFacts, *, now: float) -> Iterator[Finding]:
    """What is to be said of it."""
    if not facts.runs:
        yield problem(
            "daemons", facts.home, "no pool runs here", "kettle up, or name its directory with --home"
        )
    yield from _daemons(facts)
    yield from _versions(facts)
    yield from _lags(facts)
    for certificate in facts.certificates:
        yield _certificate(certificate, now)
    for each in facts.listeners:
        yield _listener(each)
    yield from _configuration(facts)


def _daemons(facts: PoolFacts) -> Iterator[Finding]:
    for each in facts.daemons:
        where = f"{each.name} of this host"
        if each.status == "waiting":
            what = f"it has ended ({each.last_exit or 'nobody knows how'}) and waits for its next start"
            yield problem("daemons", where, what, f"kettle logs {each.name}")
        elif each.hangs:
            what = f"it gave no sign of life {each.hangs} times and was ended"
            yield warning(
                "daemons",
                where,
                what,
                f"kettle logs {each.name}: its log has the stacks; disks and networks first",
            )
        elif each.starts > _OFTEN:
            what = f"it was started {each.starts} times; last it ended with {each.last_exit or 'an unknown status'}"
            yield warning("daemons", where, what, f"kettle logs {each.name} --level warning")
        elif each.status == "off":
            yield note("daemons", where, "it is switched off", f"kettle on {each.name}")
        else:
            yield good("daemons", where, each.status)


def _versions(facts: PoolFacts) -> Iterator[Finding]:
    if facts.master_version and facts.master_version != facts.version:
        what = f"its daemons are of Kettle {facts.master_version}, and this command of {facts.version}"
        yield warning(
            "versions", "this host", what, "kettle restart, so that the daemons are of what is installed"
        )
    versions = {each.version for each in facts.hosts if each.version}
    for each in facts.hosts:
        if each.installed:
            what = f"it runs Kettle {each.version}, and {each.installed} is installed"
            yield note("versions", each.name, what, f"kettle restart {each.name}")
        if each.said and each.heard and abs(each.said - each.heard) > _AD_S:
            yield clock_finding(each.name, each.name, each.said - each.heard)
    if len(versions) > 1:
        what = f"hosts of the pool have different versions: {', '.join(sorted(versions))}"
        yield note("versions", "the pool", what, "finish the upgrade: docs/how-to/upgrade-a-pool.md")
    elif versions:
        yield good("versions", "the pool", f"all hosts have Kettle {versions.pop()}")


def _lags(facts: PoolFacts) -> Iterator[Finding]:
    behind = False
    for lag in facts.lags:
        where = f"{lag.projection} in {lag.shard}"
        if lag.error:
            behind = True
            yield problem(
                "projections", where, f"it has stopped: {lag.error}", "kettle log projections says what to do"
            )
        elif lag.frames and lag.seconds > _BEHIND_S:
            behind = True
            what = f"it is {lag.frames} frames behind, for {duration(lag.seconds)}"
            yield warning(
                "projections",
                where,
                what,
                "is accounting alive, and the database busy?  kettle logs accounting",
            )
    if facts.lags and not behind:
        yield good("projections", "the database", "all tables are as far as the log")


def _certificate(each: CertificateFacts, now: float) -> Finding:
    if each.error:
        return problem(
            "tls", each.path, f"the certificate cannot be read: {each.error}", "name another in the settings"
        )
    ends, days = datetime.fromtimestamp(each.ends, UTC), (each.ends - now) / 86400
    if days <= 0:
        what = f"the certificate has expired ({ends:%Y-%m-%d %H:%M} UTC): no client connects"
        return problem(
            "tls", each.path, what, "kettle pki renew, or ask who has made it; then kettle reconfig"
        )
    if days < _SOON_DAYS:
        what = f"the certificate ends in {days:.0f} days"
        return warning(
            "tls", each.path, what, "kettle pki renew, or ask who has made it; then kettle reconfig"
        )
    return good("tls", each.path, f"the certificate is good until {ends:%Y-%m-%d}")


def _listener(each: ListenerFacts) -> Finding:
    if each.wanted and not each.listens:
        return problem(
            "ports",
            each.address,
            f"nothing listens for {each.what}",
            "kettle status; kettle logs of that service",
        )
    if each.listens and not each.wanted:
        what = f"somebody listens there, and {each.what} is to"
        return warning(
            "ports", each.address, what, f"ss -ltnp says who; else choose another port for {each.what}"
        )
    return good("ports", each.address, f"{each.what} {'answers' if each.listens else 'can listen there'}")


def _configuration(facts: PoolFacts) -> Iterator[Finding]:
    for sentence, mild in facts.configuration:
        say = warning if mild else problem
        yield say("configuration", facts.home, sentence, "kettle config check")
    if not facts.configuration:
        yield good("configuration", facts.home, "it is right")
    for each in facts.not_used_yet:
        yield note(
            "configuration", facts.home, f"{each} is not used yet", "kettle reconfig; kettle config diff"
        )
    for path, digest in facts.fingerprints.items():
        yield good("configuration", path, f"fingerprint {digest}")
