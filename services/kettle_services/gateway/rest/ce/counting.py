"""Counting jobs by state, VO and credential, and saying that and the ads of access points as CEView does."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from kettle_services.gateway.rest.job_rows import shown
from kettle_wire.ads.types import Ad, Expr, Scalar
from kettle_wire.codes import JobStatus
from kettle_wire.rest.entrypoint_status import JobCounts, PilotCounts

_STATUS: Final = "JobStatus"
_SUBJECTS: Final = ("x509userproxysubject", "AuthTokenSubject")
_VOS: Final = ("x509UserProxyVOName", "VO")
_FQAN: Final = "x509UserProxyFirstFQAN"
COUNTED: Final = (_STATUS, *_SUBJECTS, *_VOS, _FQAN)
"""Attributes of a job by which it is counted."""
_UNKNOWN: Final = "Unknown"
_NULLS: Final = ("/Role=NULL", "/Capability=NULL")
"""Parts of an FQAN that say nothing."""
_DUTY: Final = "RecentDaemonCoreDutyCycle"
_BUSY: Final = 0.90
_TOO_BUSY: Final = 0.95
TABLE: Final = (
    {"label": "Kettle version", "attrib": "KettleVersion"},
    {"label": "HTCondor version", "attrib": "CondorVersion"},
)
"""Attributes of access points that are worth a column."""


class Credential(msgspec.Struct, frozen=True, order=True):
    """With what jobs came."""

    vo: str
    subject: str
    group: str


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """All that is counted at once."""

    at: float
    """Seconds since the epoch."""
    totals: JobCounts
    vos: dict[str, JobCounts]
    pilots: list[PilotCounts]

    @classmethod
    def of(cls, ads: Iterable[Ad], at: float) -> "Counts":
        """Of jobs as they are at a time."""
        found: dict[Credential, Counter[int]] = defaultdict(Counter)
        for ad in ads:
            status = ad.get(_STATUS)
            found[_credential(ad)][status if isinstance(status, int) else 0] += 1
        by_vo: dict[str, Counter[int]] = defaultdict(Counter)
        for credential, counts in found.items():
            by_vo[credential.vo].update(counts)
        total: Counter[int] = Counter()
        for counts in found.values():
            total.update(counts)
        return cls(
            at=at,
            totals=_job_counts(total),
            vos={vo: _job_counts(by_vo[vo]) for vo in sorted(by_vo)},
            pilots=[
                PilotCounts(
                    subject=each.subject, vo=each.vo, group=each.group, counts=_job_counts(found[each])
                )
                for each in sorted(found)
            ],
        )


def vo_of(ad: Ad) -> str:
    """Of which VO a job is; CEView's word where it says none."""
    return _first(ad, _VOS) or _UNKNOWN


def _credential(ad: Ad) -> Credential:
    group = _first(ad, (_FQAN,))
    for null in _NULLS:
        group = group.replace(null, "")
    return Credential(vo_of(ad), _first(ad, _SUBJECTS) or _UNKNOWN, group)


def _first(ad: Ad, names: Iterable[str]) -> str:
    values = (ad.get(name) for name in names)
    return next((value for value in values if isinstance(value, str) and value), "")


def _job_counts(counts: Counter[int]) -> JobCounts:
    return JobCounts(
        idle=counts[JobStatus.IDLE],
        running=counts[JobStatus.RUNNING],
        held=counts[JobStatus.HELD],
        jobs=counts.total(),
    )


def status_of(ad: Ad) -> str:
    """How an access point is, by how busy it says that it is: CEView's words and bounds."""
    duty = ad.get(_DUTY)
    if not isinstance(duty, int | float) or isinstance(duty, bool):
        return "UNKNOWN"
    return "CRITICAL" if duty > _TOO_BUSY else "WARNING" if duty > _BUSY else "OK"


def view_totals(counts: Counts) -> Mapping[str, float]:
    """As CEView answers `/json/totals`."""
    return {**_states(counts.totals), "UpdateDate": counts.at}


def view_vos(counts: Counts) -> Mapping[str, Mapping[str, int]]:
    """As CEView answers `/json/vos`."""
    return {vo: _with_jobs(each) for vo, each in counts.vos.items()}


def view_pilots(counts: Counts) -> list[Mapping[str, int | str]]:
    """As CEView answers `/json/pilots`."""
    return [
        {**_with_jobs(each.counts), "DN": each.subject, "VO": each.vo, "VOMS": each.group}
        for each in counts.pilots
    ]


def view_ad(ad: Ad) -> Mapping[str, object]:
    """An ad in HTCondor's form of JSON: an expression is text between marks."""
    return {name: _value(shown(value)) for name, value in ad.items()}


def _value(value: Scalar) -> object:
    return f"/Expr({value.expr})/" if isinstance(value, Expr) else value


def _states(counts: JobCounts) -> Mapping[str, int]:
    return {"Running": counts.running, "Idle": counts.idle, "Held": counts.held}


def _with_jobs(counts: JobCounts) -> Mapping[str, int]:
    return {**_states(counts), "Jobs": counts.jobs}
