"""`kettle doctor` and `kettle log-level` in a real pool."""

import json
import tarfile
from pathlib import Path

from kettle.bus.credentials import Credential
from kettle.testing.throwaway_pool import ThrowawayPool


async def test_an_examination(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    A pool that works has no problem but that its database is thrown away; the bundle has no secret of it.
    """
    said = await pool.kettle("doctor", "--json")
    found = json.loads(said.out)
    checks = {each["check"] for each in found}
    assert {
        "versions",
        "limits",
        "disk",
        "cgroups",
        "clocks",
        "bus",
        "daemons",
        "projections",
        "configuration",
    } <= checks
    problems = [each for each in found if each["grade"] == "problem"]
    assert {"durability"} >= {each["check"] for each in problems}, problems
    assert bool(problems) == bool(said.status)

    target = tmp_path / "bundle.tar.gz"
    made = await pool.kettle("doctor", "bundle", "--output", str(target))
    assert 0 == made.status, made.err
    with tarfile.open(target) as archive:
        everything = b"".join(archive.extractfile(each).read() for each in archive).decode()  # type: ignore[union-attr]
    for path in (pool.home / "credentials").rglob("*.creds"):
        credential = Credential.read(path)
        assert credential.seed not in everything
        assert not credential.jwt or credential.jwt not in everything
    assert '"check"' in everything


async def test_log_levels(pool: ThrowawayPool) -> None:
    """A daemon is told while it runs: it stays the same process."""
    pid = pool.pid("negotiator")
    unknown = await pool.kettle("log-level", "negotiatr", "debug")
    assert (2, True) == (unknown.status, "there is no daemon" in unknown.err)
    assert 0 == (await pool.kettle("log-level", "negotiator", "debug")).status
    assert "debug" == json.loads((await pool.kettle("log-level", "--json")).out)["negotiator"]
    assert 0 == (await pool.kettle("log-level", "negotiator", "default")).status
    assert "debug" not in (await pool.kettle("log-level", "--json")).out
    assert pid == pool.pid("negotiator")
