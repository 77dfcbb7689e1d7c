"""A pool whose connections are all encrypted: its commands and jobs work as in any other, and it lets no wrong server in."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio

from kettle.pki.authority_files import AuthorityFiles
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
