"""
Records for APEL of jobs that came through a compute entrypoint, made from the ads of its history.

A *batch record* says what a job used, a *blah record* whose it was; APEL joins them.  What cannot be told is quarantined with the reason.
Pure: the same ads make the same octets, so the files of a day can be made again.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from kettle.jobs.credential_attributes import VO
from kettle_wire.ads.types import Ad, Scalar

_RULE: Final = re.compile(r'(/(?:[^/\\]|\\.)*/|"[^"]*"|\S+)\s+("[^"]*"|\S+)(?:\s+("[^"]*"|\S+))?')
_FORBIDDEN: Final = re.compile(r'[|"\n\r]')
_SCALING: Final = "ApelScaling"


class MappingError(ValueError):
    """A mapping that cannot be read: the line, and one sentence."""


class IdentityRule(msgspec.Struct, frozen=True):
    """Who somebody is for APEL."""

    pattern: re.Pattern[str]
    dn: str
    fqan: str


class ApelJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job as APEL is told of it."""

    id: str
    owner: str
    dn: str
    fqan: str
    wall: int
    """Seconds, as all times here."""
    user_cpu: int
    system_cpu: int
    began: int
    """Since the epoch."""
    ended: int
    memory_kib: int
    image_kib: int
    cpus: int
    scaling: float
    local_id: str
    """What the batch system calls it; its own number in this pool."""
    vo: str = ""
    """For which VO it was submitted, by the credential of its submitter; empty: for none."""


class Quarantined(msgspec.Struct, frozen=True):
    """A job of which APEL is told nothing."""

    id: str
    reason: str


class ApelRecords(msgspec.Struct, frozen=True, kw_only=True):
    """What APEL is told, and what it is not."""

    jobs: tuple[ApelJob, ...]
    """In the order of their ends."""
    quarantined: tuple[Quarantined, ...]


def read_identities(text: str, source: str) -> tuple[IdentityRule, ...]:
    """
    Rules of the form `PATTERN DN [FQAN]`: a pattern is `ISSUER,SUBJECT` of a token, or the owner of a job; between slashes it is a
    regular expression.  The first that fits counts.

    Raises:
        MappingError: a line is none.
    """
    found: list[IdentityRule] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        match = _RULE.fullmatch(line)
        if match is None:
            raise MappingError(f"{source}, line {number}: write PATTERN DN FQAN")
        pattern, dn, fqan = (part.strip('"') for part in (match[1], match[2], match[3] or ""))
        try:
            compiled = re.compile(pattern[1:-1] if match[1].startswith("/") else re.escape(pattern))
        except re.error as error:
            raise MappingError(
                f"{source}, line {number}: {pattern} is no regular expression: {error}"
            ) from error
        found.append(IdentityRule(compiled, dn, fqan))
    return tuple(found)


def apel_records(ads: Iterable[Ad], rules: Sequence[IdentityRule]) -> ApelRecords:
    """
    What is told of jobs that have left the queue; of those that never ran there is nothing to tell, and each is told once, however often
    it is among the ads.
    """
    jobs: dict[str, ApelJob] = {}
    quarantined: dict[str, Quarantined] = {}
    for ad in ads:
        folded = {name.lower(): value for name, value in ad.items()}
        if not _number(folded, "jobstartdate"):
            continue
        job = _job(folded, rules)
        if isinstance(job, ApelJob):
            jobs[job.id] = job
        else:
            quarantined[job.id] = job
    return ApelRecords(
        jobs=tuple(sorted(jobs.values(), key=lambda each: (each.ended, each.id))),
        quarantined=tuple(sorted(quarantined.values(), key=lambda each: each.id)),
    )


def batch_text(told: ApelRecords) -> str:
    """The batch records: a line each."""
    return "".join(
        f"{each.id}|{each.owner}|{each.wall}|{each.user_cpu}|{each.system_cpu}|{each.began}|{each.ended}|{each.memory_kib}|"
        f"{each.image_kib}|{each.cpus}|{each.scaling:g}\n"
        for each in told.jobs
    )


def blah_text(told: ApelRecords, ce_id: str) -> str:
    """The blah records: a line each; `ce_id` is how the entrypoint is called, `HOST:PORT/QUEUE`."""
    return "".join(
        f'"timestamp={_stamp(each.ended)}" "userDN={each.dn}" "userFQAN={each.fqan}" "ceID={ce_id}" "jobID={each.id}" '
        f'"lrmsID={each.local_id}" "localUser={each.owner}" "clientID=0"\n'
        for each in told.jobs
    )


def _job(folded: dict[str, Scalar], rules: Sequence[IdentityRule]) -> ApelJob | Quarantined:
    owner = _text(folded, "owner")
    name = f"{_number(folded, 'clusterid')}.{_number(folded, 'procid')}"
    key = _text(folded, "globaljobid") or name
    who = _identity(folded, owner)
    vo = _text(folded, VO.lower())
    rule = next((each for each in rules if each.pattern.fullmatch(who)), None)
    if rule is None and vo:
        rule = IdentityRule(re.compile(""), who, f"/{vo}")
    if rule is None:
        return Quarantined(key, f"nobody says who {who} is: add a line of the mapping")
    wall = _number(folded, "remotewallclocktime")
    if wall <= 0:
        return Quarantined(key, "it has no RemoteWallClockTime")
    local = _text(folded, "gridjobid").rpartition("/")[2] or name
    for word in (key, owner, local, rule.dn, rule.fqan):
        if _FORBIDDEN.search(word):
            return Quarantined(key, f"{word!r} has a character that ends a field")
    return ApelJob(
        id=key,
        owner=owner,
        dn=rule.dn,
        fqan=rule.fqan,
        wall=wall,
        user_cpu=_number(folded, "remoteusercpu"),
        system_cpu=_number(folded, "remotesyscpu"),
        began=_number(folded, "jobstartdate"),
        ended=_ended(folded),
        memory_kib=_number(folded, "residentsetsize"),
        image_kib=_number(folded, "imagesize"),
        cpus=max(_number(folded, "cpusprovisioned") or _number(folded, "requestcpus"), 1),
        scaling=_scaling(folded),
        local_id=local,
        vo=vo,
    )


def _identity(folded: dict[str, Scalar], owner: str) -> str:
    """
    What the mapping is about: the token's issuer and subject, else the owner. Only what the schedd has set is looked at: all else a
    job may say of itself.
    """
    issuer, subject = _text(folded, "authtokenissuer"), _text(folded, "authtokensubject")
    return f"{issuer},{subject}" if issuer and subject else owner


def _ended(folded: dict[str, Scalar]) -> int:
    """When a job that completed did; of one that was removed after it had run when it was."""
    return _number(folded, "completiondate") or _number(folded, "enteredcurrentstatus")


def _scaling(folded: dict[str, Scalar]) -> float:
    for name in (f"machineattr{_SCALING}0".lower(), _SCALING.lower()):
        value = folded.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return float(value)
    return 1.0


def _stamp(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _text(folded: dict[str, Scalar], name: str) -> str:
    value = folded.get(name, "")
    return value if isinstance(value, str) else ""


def _number(folded: dict[str, Scalar], name: str) -> int:
    value = folded.get(name, 0)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0
