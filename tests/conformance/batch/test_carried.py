"""Jobs whose files travel over HTTPS, because their nodes share no directory with the entrypoint."""

import os
import ssl
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest
from tests.conformance.batch.entrypoint import Entrypoint, World, until

from kettle.pki.certificates import issue, make_authority
from kettle.runtime import SettingsError
from kettle.testing.servers.fake_slurm import FakeSlurm
from kettle.testing.servers.held_port import held_port
from kettle_services.ce.attempts.node_files import NodeFiles
from kettle_services.ce.batch.settings import BatchSettings, FilesSettings
from kettle_services.ce.domain.attempts.attempt import Stage
from kettle_services.ce.domain.batch.carried import NUMBER
from kettle_wire.batch import BatchKind
from kettle_wire.payloads import Payload, PayloadEnd, PayloadReport

HIDDEN = """\
#!/bin/sh
# A node: what the entrypoint keeps is not there.
exec unshare --mount sh -c 'mount -t tmpfs tmpfs "{hidden}" && exec "$@"' sh "$@"
"""


class Standing:
    """What calls a service's files again when its process is told to."""

    def on_reread(self, reread: Callable[[], None]) -> None:
        """It never is."""


@pytest.fixture
def fake(tmp_path: Path) -> Generator[FakeSlurm]:
    with FakeSlurm(tmp_path / "slurm") as programs:
        programs.set_mode("runs")
        yield programs


@pytest.fixture
def files(tmp_path: Path) -> FilesSettings:
    """With a certificate that nobody trusts who is not told to."""
    now = datetime.now(UTC)
    authority = make_authority("nodes", now=now)
    server = issue(authority, ["127.0.0.1"], "server", now=now)
    for name, data in {
        "authority": authority.certificate,
        "certificate": server.certificate,
        "key": server.key,
    }.items():
        (tmp_path / name).write_bytes(data)
        (tmp_path / name).chmod(0o600)
    port = held_port()
    return FilesSettings(
        url=f"https://127.0.0.1:{port}",
        port=port,
        certificate=str(tmp_path / "certificate"),
        key=str(tmp_path / "key"),
        authority=str(tmp_path / "authority"),
    )


@asynccontextmanager
async def running(fake: FakeSlurm, files: FilesSettings, place: Path) -> AsyncGenerator[Entrypoint]:
    """An entrypoint whose home its nodes do not see."""
    home, node = place / "home", place / "node"
    home.mkdir(exist_ok=True)
    environment = dict(fake.environment)
    if os.geteuid() == 0:
        node.write_text(HIDDEN.format(hidden=home))
        node.chmod(0o755)
        environment["FAKE_SLURM_NODE"] = str(node)
    settings = BatchSettings(
        name="cluster",
        kind=BatchKind.SLURM,
        directory=str(place / "scratch"),
        shared=False,
        environment=environment,
        poll_least=0.1,
        poll_most=0.2,
        settling=0.1,
        patience=60.0,
    )
    served = NodeFiles(files, home)
    world = World(settings, home, files=served)
    async with served.running(Standing()), world.running() as entrypoint:
        await entrypoint.well()
        yield entrypoint


async def test_files_come_and_go_without_a_shared_directory(
    fake: FakeSlurm, files: FilesSettings, tmp_path: Path
) -> None:
    """
    A job finds its inputs on its node, its results come back with how it ended, small and large ones, and nothing stays on either side.
    """
    async with running(fake, files, tmp_path) as entrypoint:
        program = "cat in; mkdir d; echo one >d/one; head -c 100000 /dev/zero >large; exit 5"
        listed = await entrypoint.submit(program, TransferOutput="d,large", TransferOutputRemaps="")
        changed = await entrypoint.submit("echo new >new; cat in >&2; kill -9 $$")
        final = await entrypoint.final(listed)
        assert final.result.exit is not None
        assert (5, None) == (final.result.exit.code, final.result.ending)
        assert {
            "_condor_stdout": b"what it reads\n", "_condor_stderr": b"", "d/one": b"one\n", "large": None,
        } == {each.name: each.data for each in final.outputs}  # fmt: skip
        assert bytes(100_000) == await entrypoint.output(listed, "large", 100_000)
        other = await entrypoint.final(changed)
        assert other.result.exit is not None
        assert (None, 9) == (other.result.exit.code, other.result.exit.signal)
        assert {"new", "_condor_stdout", "_condor_stderr"} == {each.name for each in other.outputs}
        for each in (listed, changed):
            await entrypoint.confirm(each)
        await until(lambda: not list((tmp_path / "scratch").rglob("*/.kettle")), lambda: "a node keeps files")
        kept = tmp_path / "home" / "ce" / "carried" / "cluster"
        await until(lambda: not list(kept.iterdir()), lambda: f"{list(kept.iterdir())}")


async def test_a_token_opens_the_files_of_one_job(
    fake: FakeSlurm, files: FilesSettings, tmp_path: Path
) -> None:
    """
    No other job's, only for the first job of the batch system that fetches them, and nothing any more once the job is over.
    """
    fake.set_mode()
    trusted = ssl.create_default_context(cafile=files.authority)
    async with running(fake, files, tmp_path) as entrypoint, aiohttp.ClientSession() as client:

        async def asked(url: str, token: str, number: str, *, out: bytes | None = None) -> int:
            headers = {"Authorization": f"Bearer {token}", NUMBER: number}
            method, path = ("GET", "in") if out is None else ("PUT", "out")
            made = client.request(method, f"{url}/{path}", headers=headers, data=out, ssl=trusted)
            async with made as answer:
                await answer.read()
                return answer.status

        served = NodeFiles(files, tmp_path / "home")  # one that begins again makes the same tokens
        first, second = [await entrypoint.submit("exit 0") for _ in range(2)]
        ways = [
            served.way("cluster", (await entrypoint.stage(each, Stage.SUBMITTED)).intent)
            for each in (first, second)
        ]
        url, token = ways[0].url, ways[0].token
        assert 401 == await asked(url, ways[1].token, "100")
        assert 401 == await asked(url, "", "100")
        assert 404 == await asked(url, token, "100", out=b"too early")
        assert 400 == await asked(url, token, "no number; of a job")
        assert [200, 200, 409] == [await asked(url, token, number) for number in ("100", "100", "101")]
        script = Path(fake.jobs()["100"][5]).read_text()
        assert token in script or ways[1].token in script
        assert str(tmp_path / "home") not in script
        for number, job in fake.jobs().items():
            fake.change(number, "CANCELLED", status=15)
            del job
        await entrypoint.final(first)
        await entrypoint.confirm(first)
        assert 404 == await asked(url, token, "100")
        assert 404 == await asked(url, token, "100", out=b"too late")


REPORTS = """\
say() {
    curl --silent --show-error --write-out '%{http_code}\\n' --output /dev/null --cacert "$KETTLE_JOB_PAYLOADS_CA" --header "$2" \
        --data "$1" "${3:-$KETTLE_JOB_PAYLOADS_URL}"
}
right="Authorization: Bearer $KETTLE_JOB_PAYLOADS_TOKEN"
say '{"begun": [{"name": "atlas.1", "owner": "bob"}]}' "$right"
say '{"over": [{"name": "atlas.1", "exit_code": 3}]}' "$right"
say '{"begun": [{"name": "atlas.1"}]}' "$right"
say '{}' "Authorization: Bearer nothing"
curl --silent --write-out '%{http_code}\\n' --output /dev/null --cacert "$KETTLE_JOB_PAYLOADS_CA" --header "$right" \
    --header 'Kettle-Batch-Id: 100' "${KETTLE_JOB_PAYLOADS_URL%/payloads}/in"
"""


async def test_a_pilot_says_what_it_runs_with_a_token_of_its_own(
    fake: FakeSlurm, files: FilesSettings, tmp_path: Path
) -> None:
    """
    It finds address and token in its environment; a report that cannot be read is refused, and the token opens no files.
    """
    async with running(fake, files, tmp_path) as entrypoint:
        pilot = await entrypoint.submit(REPORTS)
        said = {each.name: each.data for each in (await entrypoint.final(pilot)).outputs}
        assert (b"204\n204\n422\n401\n401\n", b"") == (said["_condor_stdout"], said["_condor_stderr"])
        begun = PayloadReport(begun=[Payload(name="atlas.1", owner="bob")])
        over = PayloadReport(over=[PayloadEnd(name="atlas.1", exit_code=3)])
        assert [(pilot.job, begun), (pilot.job, over)] == entrypoint.world.payloads


async def test_nodes_that_share_nothing_want_a_server(fake: FakeSlurm, tmp_path: Path) -> None:
    """One whose nodes share nothing, without a server for files, is refused when it begins."""
    settings = BatchSettings(
        name="cluster",
        kind=BatchKind.SLURM,
        directory=str(tmp_path),
        shared=False,
        environment=fake.environment,
    )
    for wrong, words in (
        (settings, "wants a table"),
        (BatchSettings(name="here", kind=BatchKind.LOCAL, directory="/x", shared=False), "is for lsf, pbs"),
    ):
        with pytest.raises((SettingsError, ExceptionGroup)) as refused:
            async with World(wrong, tmp_path).running():
                pass
        assert words in repr(refused.value)
