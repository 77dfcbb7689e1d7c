"""Records for APEL."""

from datetime import UTC, datetime

import pytest

from kettle.routes.apel import MappingError, apel_records, batch_text, blah_text, read_identities
from kettle_wire.ads.types import Ad

NOON = int(datetime(2026, 11, 25, 12, tzinfo=UTC).timestamp())
RULES = read_identities(
    """\
# pilots
/https:\\/\\/issuer\\.example\\/vo,pilot.*/ "/O=example/CN=pilots of the vo" /vo/Role=pilot
anna /O=site/CN=anna
""",
    "map",
)


def job(proc: int, **changes: object) -> Ad:
    """A job at Slurm that ran for an hour and ended at noon."""
    ad = {
        "ClusterId": 7,
        "ProcId": proc,
        "GlobalJobId": f"schedd@pool#7.{proc}#1",
        "Owner": "grid01",
        "AuthTokenIssuer": "https://issuer.example/vo",
        "AuthTokenSubject": "pilot-1",
        "JobStartDate": NOON - 3600,
        "CompletionDate": NOON,
        "RemoteWallClockTime": 3600.0,
        "RemoteUserCpu": 3000.4,
        "RemoteSysCpu": 12.0,
        "ResidentSetSize": 204800,
        "ImageSize": 409600,
        "RequestCpus": 8,
        "ApelScaling": 1.5,
        "GridJobId": "batch slurm ce.example slurm/20261125/4711",
    }
    return {name: value for name, value in (ad | changes).items() if value is not None}  # type: ignore[misc]


def test_a_job_has_one_record_of_each_kind() -> None:
    """
    In the form that APEL's parsers read, with the batch system's own number, and once however often it is told.
    """
    day = apel_records([job(0), job(0)], RULES)
    assert f"schedd@pool#7.0#1|grid01|3600|3000|12|{NOON - 3600}|{NOON}|204800|409600|8|1.5\n" == batch_text(
        day
    )
    assert (
        '"timestamp=2026-11-25 12:00:00" "userDN=/O=example/CN=pilots of the vo" "userFQAN=/vo/Role=pilot" '
        '"ceID=ce.example:9619/slurm" "jobID=schedd@pool#7.0#1" "lrmsID=4711" "localUser=grid01" "clientID=0"\n'
        == blah_text(day, "ce.example:9619/slurm")
    )


def test_the_order_of_the_ads_changes_nothing() -> None:
    """The file of a day is the same octets whenever it is made."""
    ads = [job(2), job(0, CompletionDate=NOON + 5), job(1)]
    texts = {batch_text(apel_records(some, RULES)) for some in (ads, ads[::-1], [*ads, *ads])}
    assert ["7.1", "7.2", "7.0"] == [line.split("#")[1] for line in texts.pop().splitlines()]
    assert set() == texts


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, True),
        ({"CompletionDate": None, "EnteredCurrentStatus": NOON}, True),
        ({"JobStartDate": None}, False),
    ],
)
def test_jobs_that_ran_are_told(changes: dict[str, object], told: bool) -> None:
    """One that was removed after it had run is, too."""
    day = apel_records([job(0, **changes)], RULES)
    assert (told, ()) == (bool(day.jobs), day.quarantined)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"AuthTokenSubject": "somebody"}, "nobody says who https://issuer.example/vo,somebody is"),
        ({"AuthTokenIssuer": None}, "nobody says who grid01 is"),
        ({"RemoteWallClockTime": None}, "it has no RemoteWallClockTime"),
        ({"Owner": "a|b"}, "'a|b' has a character that ends a field"),
    ],
)
def test_what_cannot_be_told_is_quarantined(changes: dict[str, object], reason: str) -> None:
    """With the reason, and the others are told."""
    day = apel_records([job(0, **changes), job(1)], RULES)
    assert ["schedd@pool#7.1#1"] == [each.id for each in day.jobs]
    assert [("schedd@pool#7.0#1", True)] == [(each.id, reason in each.reason) for each in day.quarantined]


def test_jobs_without_a_token_are_those_of_their_owner() -> None:
    """Without a VO, if the mapping says none; without a factor a machine counts as it is."""
    day = apel_records([job(0, AuthTokenIssuer=None, Owner="anna", ApelScaling=None, GridJobId=None)], RULES)
    assert [("/O=site/CN=anna", "", 1.0, "7.0")] == [
        (each.dn, each.fqan, each.scaling, each.local_id) for each in day.jobs
    ]


@pytest.mark.parametrize("line", ["alone", "/(/ a b"])
def test_a_mapping_that_makes_no_sense_is_refused(line: str) -> None:
    with pytest.raises(MappingError, match="map, line 2: "):
        read_identities(f"anna a\n{line}\n", "map")


def test_a_job_of_a_vo_needs_no_line() -> None:
    """A line about it counts before; what a job says of itself counts for nothing."""
    (told,) = apel_records([job(0, x509UserProxyVOName="vo", AuthTokenSubject="robot")], RULES).jobs
    assert ("https://issuer.example/vo,robot", "/vo", "vo") == (told.dn, told.fqan, told.vo)
    (told,) = apel_records([job(0, x509UserProxyVOName="vo")], RULES).jobs
    assert ("/vo/Role=pilot", "vo") == (told.fqan, told.vo)
    own = {
        "AuthTokenIssuer": None,
        "orig_AuthTokenIssuer": "https://issuer.example/vo",
        "x509userproxysubject": "anna",
    }
    (left,) = apel_records([job(0, **own)], RULES).quarantined
    assert "nobody says who grid01 is: add a line of the mapping" == left.reason
