"""What a job, or another access point, may try against an entrypoint."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from tests.conformance.batch.entrypoint import SCHEDD, World, job

from kettle.accounts.lookup import Accounts
from kettle.bus.memory import MemoryBus
from kettle.bus.ports import RefusedError
from kettle.commands.local import LocalCommands
from kettle.commands.port import Ran
from kettle.testing.servers.fake_slurm import FakeSlurm
from kettle_services.ce.attempts.remote_sandboxes import RemoteSandboxes
from kettle_services.ce.attempts.sandboxes import Kept, LocalSandboxes
from kettle_services.ce.batch.asking import Asking, Script
from kettle_services.ce.batch.port import NotTakenError, Submission
from kettle_services.ce.batch.settings import BatchSettings
from kettle_services.ce.domain.attempts.attempt import Run
from kettle_services.ce.domain.batch.extra_arguments import SLURM
from kettle_services.ce.domain.batch.requests import RequestError, request_of
from kettle_services.ce.domain.batch.script import Program, left, script
from kettle_wire.batch import BatchKind, BatchRequest
from kettle_wire.commands.ce import batch_startd
from kettle_wire.commands.startd import ACTIVATE, REQUEST_CLAIMS, Activate, ClaimKey, RequestClaims
from kettle_wire.identity import Identity, daemon, visitor
from kettle_wire.jobs import JobId
from kettle_wire.subjects import Subjects

_INTENT = "kaaaaaaaaaaaaaa"


@pytest.mark.parametrize(
    ("schedd", "shadow"),
    [
        (visitor("elsewhere"), visitor("elsewhere")),
        (daemon("schedd", "joined"), daemon("shadow", "joined")),
    ],
    ids=["visitor", "joined"],
)
async def test_others_have_nothing_run_here(tmp_path: Path, schedd: Identity, shadow: Identity) -> None:
    """
    Neither a pool that flocks here nor an access point that has joined gets claims, or has a job begun under an account that it names.
    """
    settings = BatchSettings(
        name="cluster",
        kind=BatchKind.SLURM,
        directory=str(tmp_path / "sandboxes"),
        environment=FakeSlurm(tmp_path / "slurm").environment,
    )
    world = World(settings, tmp_path)
    asks, begins = (
        MemoryBus(world.server, subjects=Subjects("test"), identity=each) for each in (schedd, shadow)
    )
    key = ClaimKey("schedd#1", "secret")
    asked = RequestClaims(
        schedd=SCHEDD,
        slot="cluster",
        capability="",
        submitter="ada",
        job={},
        claims=[key],
        lease=1000.0,
    )
    begun = Activate(activations=[job(key, "id", Owner="ada")])
    async with world.running() as entrypoint:
        await entrypoint.well()
        with pytest.raises(RefusedError, match="does not listen to"):
            await asks.call(REQUEST_CLAIMS, batch_startd(SCHEDD), asked)
        with pytest.raises(RefusedError, match="does not listen to"):
            await begins.call(ACTIVATE, batch_startd(SCHEDD), begun)
        assert {} == entrypoint.claims
    asks.close()
    begins.close()


async def test_the_hook_has_no_more_rights_than_the_job(person: str) -> None:
    """A submitter who names variables that steer the site's program steers it with the own account."""
    with tempfile.TemporaryDirectory(
        prefix="kettle-hook-"
    ) as directory:  # accounts reach no test's directory
        hook = Path(directory, "hook")
        hook.write_text('#!/bin/sh\necho "#X $(id -un) $Walltime"\n')
        for each in (hook.parent, hook):
            each.chmod(0o755)
        asking = Asking(LocalCommands({}, Accounts()), patience=60.0, hook=str(hook))
        submission = Submission(
            intent=_INTENT,
            owner=person,
            directory="/",
            script="",
            request=BatchRequest(extra={"Walltime": "5"}),
        )
        assert f"#X {person} 5" in (await asking.script(submission, "#X", [])).text.splitlines()


@pytest.mark.parametrize(
    "ad",
    [
        {"cerequirements": "-S id;,Site"},
        {"cerequirements": "Site", "site": "a\0b"},
        {"cerequirements": "Site,LD_PRELOAD", "ld_preload": "/tmp/x.so"},
        {"cerequirements": "BASH_ENV", "bash_env": "/tmp/x"},
        {"cerequirements": "PATH", "path": "/tmp"},
        {"batchextrasubmitargs": "--comment=a\0b"},
    ],
)
def test_what_no_command_can_be_told_holds_the_job(ad: dict[str, object]) -> None:
    """
    An octet 0, a name that is none, or one that would steer the program of the site's hook: that ends the job and not the service.
    """
    with pytest.raises(RequestError):
        request_of(ad)


@pytest.mark.parametrize(
    ("own", "hook", "arguments"),
    [(True, "", "--time=900"), (False, "#SBATCH --qos=grid", "--qos=high"), (True, "", "--account=theirs")],
)
async def test_a_jobs_words_change_nothing_that_was_decided(own: bool, hook: str, arguments: str) -> None:
    """
    It is not submitted if they say what its route was chosen by, or what the site's hook says; words that its route has put there are told as
    they are, unless they are about what is ours.
    """
    asking = Asking(LocalCommands({}, Accounts()), patience=60.0)
    ad = {"batchextrasubmitargs": arguments, "batchextrasubmitargsareown": own}
    submission = Submission(
        intent="kaaaaaaaaaaaaaa", owner="", directory="/tmp", script="exit 0", request=request_of(ad)
    )
    script = Script("#!/bin/sh\n#SBATCH --account=site\n", [hook])
    with pytest.raises(NotTakenError, match="BatchExtraSubmitArgs of the job has"):
        asking.arguments(submission, script, SLURM)
    routes = msgspec.structs.replace(submission, request=request_of({"batchextrasubmitargs": "--qos=grid"}))
    assert ["--account=site", "--qos=grid"] == asking.arguments(routes, Script(script.text, []), SLURM)


@pytest.mark.parametrize("number", ["9" * 400, "9" * 13, "٣"])
def test_a_number_without_end_is_no_word(number: str) -> None:
    """What a job leaves in place of its end is taken for nothing, and breaks nothing."""
    assert None is left(f"code {number} 10 12\n")
    assert None is left(f"code 0 {number} 12\n")
    used = left(f"code 0 10 12\n{number}m{number}s 0m0s\n")
    assert used is not None
    assert 0.0 == used.cpu


def test_a_job_writes_no_line_of_its_script() -> None:
    """
    Grid Engine and LSF read directives anywhere: nothing of a job begins a line; its values come through unchanged.
    """
    value = "a'\n#$ -P vip\n#BSUB -P vip"
    program = Program(words=["printf", "%s", value], environment={"A": value}, directory=f"/x\n#$ {value}")
    assert [] == [line for line in script(program, "/x").splitlines() if line.startswith("#")]


async def test_values_of_several_lines_come_through(tmp_path: Path) -> None:
    """Arguments and variables are what the job says, quotes and ends of lines included."""
    value = "a'\n#$ -P vip\n\n'b\""
    (tmp_path / ".kettle").mkdir()
    program = Program(
        words=["sh", "-c", 'printf "%s|%s" "$1" "$A"', "sh", value],
        environment={"A": value},
        directory=str(tmp_path),
        stdout=str(tmp_path / "out"),
    )
    await LocalCommands({}).run(["sh", "-s"], script(program, str(tmp_path)), within=30.0)
    assert f"{value}|{value}" == (tmp_path / "out").read_text()


def _run() -> Run:
    return Run(job=JobId(1, 0), attempt=1, owner="", intent=_INTENT, request=BatchRequest(), since=0.0)


async def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    """What is read of a sandbox is files: the word of a job through a pipe is none."""
    ours = tmp_path / _INTENT / ".kettle"
    ours.mkdir(parents=True)
    os.mkfifo(ours / "end")
    pipe = os.open(ours / "end", os.O_RDWR)
    try:
        os.write(pipe, b"code 0 10 12\n".ljust(4096))
        with pytest.raises(OSError, match="not a regular file"):
            await LocalSandboxes(str(tmp_path), Accounts()).left(_run())
    finally:
        os.close(pipe)


async def test_a_link_in_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    """What was kept in a sandbox is read from there: a link may lead to what has no end."""
    ours = tmp_path / _INTENT / ".kettle"
    ours.mkdir(parents=True)
    (tmp_path / "elsewhere").write_bytes(msgspec.msgpack.encode(Kept({}, "its script", {})))
    (ours / "kept").symlink_to(tmp_path / "elsewhere")
    sandboxes = LocalSandboxes(str(tmp_path), Accounts())
    with pytest.raises(PermissionError):
        await sandboxes.script(_run())
    (ours / "kept").unlink()
    (tmp_path / "elsewhere").rename(ours / "kept")
    assert "its script" == await sandboxes.script(_run())


class Printing:
    """A host that prints the same whatever it is asked."""

    lingering = 0.0

    def __init__(self, output: str) -> None:
        self._output = output

    async def run(
        self, words: Sequence[str], standard_input: str = "", *, within: float, account: str = ""
    ) -> Ran:
        """Print it."""
        return Ran(0, self._output, "")

    async def close(self) -> None:
        """There is nothing to give up."""


async def test_only_sandboxes_are_removed(tmp_path: Path) -> None:
    """
    A job at a host makes files there with names that lead out of the directory of results: they are none of ours.
    """
    commands = Printing(f"{_INTENT}\nx ..\n.\nresults\n")
    sandboxes = RemoteSandboxes(commands, "/far", tmp_path / "here", patience=5.0)
    assert [_INTENT] == await sandboxes.others(set())
