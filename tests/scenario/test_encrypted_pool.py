"""
A pool whose connections are all encrypted: its commands and jobs work as in any other, and it lets no wrong server in.
"""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from kettle.bus.encryption import dial
from kettle.client.connections.pool_file import PoolFile
from kettle.pki.authority_files import AuthorityFiles
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers import selection
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool

from .condor import Condor

pytestmark = [
    pytest.mark.skipif(not selection.servers_are_ours(), reason="encrypts a server of its own"),
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> AuthorityFiles:
    """An authority with a certificate for the loopback interface."""
    files = AuthorityFiles(tmp_path_factory.mktemp("pki"))
    files.make("Trial", now=datetime.now(UTC))
    files.issue(["127.0.0.1"], "server", now=datetime.now(UTC))
    return files


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def encrypted(
    tmp_path_factory: pytest.TempPathFactory, template: Path, authority: AuthorityFiles
) -> AsyncIterator[ThrowawayPool]:
    directory = authority.directory
    settings = {
        "kettle": {"nats_ca": str(directory / "ca.pem")},
        "master": {
            "nats_certificate": str(directory / "127.0.0.1.pem"),
            "nats_key": str(directory / "127.0.0.1.key"),
        },
    }
    place = tmp_path_factory.mktemp("encrypted")
    async with throwaway_pool(place, cpus=2, settings=settings, template=template) as pool:
        yield pool


def serial(url: str, authority: AuthorityFiles) -> str:
    """Of the certificate that the bus shows to who connects now."""
    ca = str(authority.kept("ca").certificate)
    line, _ = dial(b"127.0.0.1", int(url.rpartition(":")[2]), ca, PATIENCE_S)
    with line:
        certificate = line.getpeercert() or {}
    return str(certificate["serialNumber"]).lower().lstrip("0")


async def test_a_certificate_is_renewed_while_the_pool_runs(
    encrypted: ThrowawayPool, authority: AuthorityFiles
) -> None:
    """
    `kettle pki renew`, then `kettle reconfig`: new connections see the new one, and those that there are stay.
    """
    directory = str(authority.directory)
    before = authority.kept("127.0.0.1").facts.serial
    assert before == serial(encrypted.state.nats_url, authority)
    services = {each.name: each.pid for each in encrypted.state.daemons}
    status, _, err = await encrypted.kettle("pki", "renew", "127.0.0.1", "--directory", directory)
    assert (0, "Servers of this pool use them after: kettle reconfig.\n") == (status, err)
    after = authority.kept("127.0.0.1").facts.serial
    assert before != after
    status, _, err = await encrypted.kettle("reconfig")
    assert status == 0, err
    async with asyncio.timeout(PATIENCE_S):
        while serial(encrypted.state.nats_url, authority) != after:
            await asyncio.sleep(0.02)
    assert services == {each.name: each.pid for each in encrypted.state.daemons}
    assert "the connection is lost" not in encrypted.log("schedd")


async def test_commands_say_why_they_do_not_trust_the_bus(encrypted: ThrowawayPool, tmp_path: Path) -> None:
    """A person's file names another authority: what is wrong, where, and what to do."""
    other = AuthorityFiles(tmp_path / "other")
    ca = str(other.make("Trial", now=datetime.now(UTC)).certificate)
    home = tmp_path / "home"
    home.mkdir()
    msgspec.structs.replace(PoolFile.load(encrypted.home), ca=ca, lock="").save(home)
    status, out, err = await encrypted.kettle("q", "--home", str(home))
    assert (1, "") == (status, out)
    assert f"is not signed by the authority in {ca}: it is another server, or take the pool's ca.pem" in err
    assert 1 == len(err.splitlines()), err


async def test_jobs_run_in_an_encrypted_pool(encrypted: ThrowawayPool, place: Path, tmp_path: Path) -> None:
    """A job that condor_submit sent runs to its end, and each command has its answer."""
    assert encrypted.state.nats_url.startswith("tls://")
    (tmp_path / "job.sub").write_text("executable = /bin/echo\narguments = hello\noutput = out\nqueue\n")
    condor = Condor(place, encrypted, tmp_path)
    done = await condor("condor_submit", "job.sub")
    assert done.status == 0, done
    status, out, err = await encrypted.kettle("wait", "1")
    assert status == 0, out + err
    assert (tmp_path / "out").read_text() == "hello\n"
    status, out, err = await encrypted.kettle("q")
    assert status == 0, err
    status, out, err = await encrypted.kettle("status")
    assert status == 0, err
    assert "slot" in out
