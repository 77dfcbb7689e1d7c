"""What `kettle doctor` says of what it has read, and what a bundle for support lets through."""

import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kettle.auth.trust.keys import KeyPair, Kind
from kettle.auth.trust.server import Permissions, user
from kettle.bus.credentials import Credential
from kettle_services.cli.doctor.bundle import filtered, write_bundle
from kettle_services.cli.doctor.findings import Finding
from kettle_services.cli.doctor.host_checks import HostFacts, host_findings
from kettle_services.cli.doctor.host_facts import host_facts
from kettle_services.cli.doctor.pool_checks import (
    CertificateFacts,
    DaemonFacts,
    HostAd,
    LagFacts,
    ListenerFacts,
    PoolFacts,
    pool_findings,
)
from kettle_services.cli.doctor.server_checks import BusFacts, DatabaseFacts, bus_findings, database_findings

GIB = 1 << 30
DAY = 86400.0
HOST = HostFacts(
    home="/home/pool", nofile=65536, nproc=-1, disk_free=50 * GIB, disk_total=99 * GIB, inodes_free=0.5, minimum_disk=GIB,
    cgroups="v2", programs={"containers": "podman"}, open_secrets=[], root=True,
)  # fmt: skip
BUS = BusFacts(url="bus:4222", version="2.15.1", jetstream=True, max_payload=8 << 20, encrypted=True)
DATABASE = DatabaseFacts(where="the database", version=160002, settings={"fsync": "on"}, connections=64)
POOL = PoolFacts(
    home="/home/pool",
    runs=True,
    version="2.0",
    master_version="2.0",
    daemons=[DaemonFacts(name="schedd", status="running", starts=1)],
    hosts=[HostAd(name="a", version="2.0", said=100.0, heard=101.0)],
    lags=[LagFacts(projection="jobs", shard="schedd", frames=1, seconds=1.0)],
    certificates=[CertificateFacts(path="/c.pem", ends=100 * DAY)],
    listeners=[ListenerFacts(what="pages", address="127.0.0.1:80", listens=True, wanted=True)],
)


def worst(found: Iterable[Finding]) -> list[tuple[str, str]]:
    """Grade and check of all that is not as it should be."""
    return [(each.grade, each.check) for each in found if each.grade != "good"]


def test_nothing_is_wrong() -> None:
    """A pool that is as it should be is told of as such."""
    found = [
        *host_findings(HOST),
        *bus_findings(BUS),
        *database_findings(DATABASE),
        *pool_findings(POOL, now=0.0),
    ]
    assert [] == worst(found)
    assert found


@pytest.mark.parametrize(
    ("changed", "grade", "check"),
    [
        ({"nofile": 1024}, "warning", "limits"),
        ({"nproc": 512}, "warning", "limits"),
        ({"disk_free": GIB // 2}, "problem", "disk"),
        ({"disk_free": 3 * GIB // 2}, "warning", "disk"),
        ({"inodes_free": 0.01}, "warning", "disk"),
        ({"cgroups": "none"}, "note", "cgroups"),
        ({"cgroups": "tracking"}, "note", "cgroups"),
        ({"programs": {"containers": ""}}, "note", "programs"),
        ({"open_secrets": ["/home/pool/credentials/user.creds"]}, "problem", "permissions"),
    ],
)
def test_hosts(changed: dict[str, Any], grade: str, check: str) -> None:
    found = list(host_findings(replace(HOST, **changed)))
    assert [(grade, check)] == worst(found)
    assert all(each.todo for each in found if each.grade in {"problem", "warning"})


@pytest.mark.parametrize(
    ("changed", "grade", "check"),
    [
        ({"error": "nobody answers"}, "problem", "bus"),
        ({"version": "2.10.3"}, "problem", "versions"),
        ({"jetstream": False}, "problem", "bus"),
        ({"asks": False}, "problem", "bus"),
        ({"encrypted": False}, "warning", "tls"),
        ({"max_payload": 1000}, "note", "bus"),
    ],
)
def test_buses(changed: dict[str, Any], grade: str, check: str) -> None:
    assert [(grade, check)] == worst(bus_findings(replace(BUS, **changed)))


@pytest.mark.parametrize(
    ("changed", "grade", "check"),
    [
        ({"error": "nobody answers"}, "problem", "database"),
        ({"version": 130001}, "problem", "versions"),
        ({"settings": {"fsync": "off"}}, "problem", "durability"),
        ({"settings": {"synchronous_commit": "off"}}, "problem", "durability"),
        ({"clock_s": 5.0}, "warning", "clocks"),
        ({"clock_s": -600.0}, "problem", "clocks"),
        ({"recovering": True}, "problem", "database"),
        ({"connections": 8}, "warning", "database"),
        ({"pending": ["log/02_pre_archive"]}, "warning", "schema"),
        ({"unknown": ["log/99_pre_new"]}, "warning", "schema"),
        ({"archiver_failed": "00000001"}, "problem", "database"),
        ({"standbys": ["replica, sync, 0 bytes behind"]}, "note", "database"),
    ],
)
def test_databases(changed: dict[str, Any], grade: str, check: str) -> None:
    assert [(grade, check)] == worst(database_findings(replace(DATABASE, **changed)))


@pytest.mark.parametrize(
    ("changed", "grade", "check"),
    [
        ({"runs": False}, "problem", "daemons"),
        ({"master_version": "1.0"}, "warning", "versions"),
        ({"daemons": [DaemonFacts(name="schedd", status="waiting")]}, "problem", "daemons"),
        ({"daemons": [DaemonFacts(name="schedd", status="running", hangs=1)]}, "warning", "daemons"),
        ({"daemons": [DaemonFacts(name="schedd", status="running", starts=9)]}, "warning", "daemons"),
        ({"daemons": [DaemonFacts(name="schedd", status="off")]}, "note", "daemons"),
        ({"hosts": [HostAd(name="a", version="2.0", said=700.0, heard=100.0)]}, "problem", "clocks"),
        ({"hosts": [HostAd(name="a", version="2.0"), HostAd(name="b", version="1.0")]}, "note", "versions"),
        ({"hosts": [HostAd(name="a", version="2.0", installed="2.1")]}, "note", "versions"),
        ({"lags": [LagFacts(projection="j", shard="s", frames=9, seconds=99.0)]}, "warning", "projections"),
        (
            {"lags": [LagFacts(projection="j", shard="s", frames=9, seconds=9.0, error="x")]},
            "problem",
            "projections",
        ),
        ({"certificates": [CertificateFacts(path="/c", ends=-1.0)]}, "problem", "tls"),
        ({"certificates": [CertificateFacts(path="/c", ends=9 * DAY)]}, "warning", "tls"),
        ({"certificates": [CertificateFacts(path="/c", error="none")]}, "problem", "tls"),
        (
            {"listeners": [ListenerFacts(what="p", address="a", listens=False, wanted=True)]},
            "problem",
            "ports",
        ),
        (
            {"listeners": [ListenerFacts(what="p", address="a", listens=True, wanted=False)]},
            "warning",
            "ports",
        ),
        ({"configuration": [("[schedd] shrad", False)]}, "problem", "configuration"),
        ({"configuration": [("odd", True)]}, "warning", "configuration"),
        ({"not_used_yet": ["interval of negotiator"]}, "note", "configuration"),
    ],
)
def test_pools(changed: dict[str, Any], grade: str, check: str) -> None:
    assert [(grade, check)] == worst(pool_findings(replace(POOL, **changed), now=0.0))


def test_this_machine_can_be_read(tmp_path: Path) -> None:
    """Secrets in a directory that others can enter are named one by one; in a private one nothing is open."""
    home = tmp_path / "home"
    (home / "credentials").mkdir(parents=True)
    (home / "credentials" / "user.creds").write_text("seed")
    (home / "credentials" / "bus-ca.pem").write_text("certificate")
    home.chmod(0o755)
    facts = host_facts(home, minimum_disk_mib=1)
    assert [str(home / "credentials" / "user.creds")] == list(facts.open_secrets)
    assert facts.disk_total > facts.disk_free > 0
    home.chmod(0o700)
    assert [] == list(host_facts(home, minimum_disk_mib=1).open_secrets)


SEED = KeyPair.new(Kind.USER)
JWT = user(KeyPair.new(Kind.ACCOUNT), SEED.public, "schedd", Permissions(), now=0)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("postgresql://kettle:canary-1@db/kettle", "canary-1"),
        (f"shows {JWT} to the bus", JWT),
        (f"the seed {SEED.seed} is", SEED.seed),
        (Credential(SEED.seed, JWT).text(), SEED.seed),
        ("-----BEGIN PRIVATE KEY-----\nY2FuYXJ5\n-----END PRIVATE KEY-----", "Y2FuYXJ5"),
        ("Authorization: Bearer canary-2", "canary-2"),
        ('smtp_password = "canary 3"', "canary 3"),
        ('{"client_secret": "canary-4"}', "canary-4"),
        ("KETTLE_S3_SECRET_KEY=canary-5", "canary-5"),
        ("kettle worker join https://iam kettle-join-1.ab.canary6.cd", "canary6"),
        ("known to the pool: canary-7", "canary-7"),
        ("ALTER ROLE ada PASSWORD 'canary-8'", "canary-8"),
        ("Authorization: Basic Y2FuYXJ5OTpw", "Y2FuYXJ5OTpw"),
        ("Set-Cookie: __Host-kettle=canary-10; Secure", "canary-10"),
        ('passphrase = "canary-11"', "canary-11"),
        (r'password = "with \" quote, canary-12"', "canary-12"),
        ("password: 'it''s canary-13'", "canary-13"),
        ('"token": "canary-14"', "canary-14"),
        ("https://s3/bucket?X-Amz-Signature=canary15", "canary15"),
        ("Y2FuYXJ5LTE2Y2FuYXJ5LTE2\nY2FuYXJ5LTE3\n-----END PRIVATE KEY-----\n", "Y2FuYXJ5LTE2"),
        ("-----BEGIN PRIVATE KEY-----\nY2FuYXJ5", "Y2FuYXJ5"),
    ],
    ids=range(21),  # keys differ in each process of the tests
)
def test_canaries(text: str, secret: str) -> None:
    """Whatever a secret looks like, it does not come through; the rest of the line does."""
    assert secret not in filtered(text, ["canary-7"])
    for plain in (
        "queue has 7 jobs",
        '"token_lifetime": 3600',
        '"join_tokens": []',
        "a basic question",
        "tokens: 7",
    ):
        assert plain == filtered(plain)


def test_a_bundle_has_no_secrets(tmp_path: Path) -> None:
    """What the pool keeps as a secret is struck out of logs and settings, and the archive is private."""
    home = tmp_path / "home"
    for name, text in {
        "credentials/schedd.creds": Credential(SEED.seed, JWT).text(),
        "postgres/passfile": "*:*:*:kettle:canary-password\n",
        "log/schedd.log": f"{SEED.seed} and {JWT} and canary-password and job 7.0\n" * 3,
        "kettle.toml": '[kettle]\ndatabase_url = "postgresql://k:canary-url@h/d"\n',
    }.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    target = tmp_path / "bundle.tar.gz"
    names = write_bundle(home, [], target)
    assert 0o600 == target.stat().st_mode & 0o777
    with tarfile.open(target) as archive:
        texts = {each.name: archive.extractfile(each).read().decode() for each in archive}  # type: ignore[union-attr]
    assert len(names) == len(texts)
    everything = "\n".join(texts.values())
    for canary in (SEED.seed, JWT, "canary-password", "canary-url"):
        assert canary not in everything
    assert "job 7.0" in texts["kettle-support/log/schedd.log"]


def test_half_a_bundle_is_not_left(tmp_path: Path) -> None:
    """Nobody sends it, and another one can be written in its place."""
    (tmp_path / "home" / "log").mkdir(parents=True)
    (tmp_path / "home" / "log" / "schedd.log").symlink_to("schedd.log")
    with pytest.raises(OSError, match="symbolic links"):
        write_bundle(tmp_path / "home", [], tmp_path / "bundle.tar.gz")
    assert not (tmp_path / "bundle.tar.gz").exists()
