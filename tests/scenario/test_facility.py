"""
An analysis facility's people: a token, seven variables of HTCondor, and programs that know nothing of Kettle.
"""

import asyncio
import faulthandler
import os
import sys
import time
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from kettle.client import select
from kettle.testing.commands.running import KETTLE, execute
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers import selection
from kettle.testing.servers.files import no_xrootd
from kettle_services.cli.facility.figures import FacilityFigures

from .client_environments import SCRIPTS, python_of
from .evidence import Evidence
from .facility import AUDIENCE, SITES, Facility, Person, facility
from .hub_programs import HubPrograms

pytestmark = [
    pytest.mark.skipif(not selection.servers_are_ours(), reason="encrypts a server of its own"),
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def here(
    tmp_path_factory: pytest.TempPathFactory, template: Path, place: Path
) -> AsyncIterator[Facility]:
    async with facility(tmp_path_factory.mktemp("facility"), place, template=template) as running:
        yield running


LONG = "KETTLE_TEST_LONG"
PAUSE_S = 1.5
"""Between the end of one service's restart and the end of the next service."""
WAITS = "executable = /bin/sleep\narguments = 600\ntransfer_executable = false\nrequirements = false\nqueue\n"


async def test_commands_need_the_seven_variables_only(here: Facility, tmp_path: Path) -> None:
    """A job runs as the subject of the token; standard error stays empty, whatever TOOL_DEBUG says."""
    ada = here.person(tmp_path / "ada", "ada")
    text = "executable = /bin/echo\narguments = done\ntransfer_executable = false\noutput = out\nqueue\n"
    done = await ada("condor_submit", "-spool", typed=text)
    assert (0, "") == (done.status, done.err), done
    cluster = int(done.out.split("cluster ")[1].strip().rstrip("."))
    async with asyncio.timeout(PATIENCE_S):
        await here.pool.client.wait(select(cluster))
    said = await ada("condor_q", f"{cluster}.0", "-af", "Owner", "JobStatus")
    assert (0, "ada 4\n", "") == said
    assert 0 == (await ada("condor_transfer_data", f"{cluster}")).status
    assert "done\n" == (ada.home / "out").read_text()
    waiting = await ada.submitted(WAITS)
    removed = await ada("condor_rm", f"{waiting}.0")
    assert (0, f"Job {waiting}.0 marked for removal\n", "") == removed


async def test_why_a_token_is_not_taken(here: Facility, tmp_path: Path) -> None:
    """
    One sentence that names the place of the token and what is wrong with it, with the status 1, from each command.
    """
    ada = here.person(tmp_path / "ada", "ada")
    good = ada.token.read_text()
    elsewhere = {"iss": "https://login.elsewhere.example", "sub": "ada", "aud": AUDIENCE}
    wrong = {
        "the token expired": here.issuer.token("ada", AUDIENCE, exp=int(time.time()) - 60),
        "was made for 'https://other.example'": here.issuer.token("ada", "https://other.example"),
        "has one of https://login.elsewhere.example": here.issuer.signed(elsewhere),
        "signature of the token": f"{good.rpartition('.')[0]}.{'A' * 86}",
        "no rule and no line of a map file": here.issuer.token("Nobody9", AUDIENCE),
        "ask its issuer for condor:/READ": here.issuer.token("ada", AUDIENCE, scope="storage.read:/"),
        "has one of nobody": "abc",
        "has no token in it": "two words",
    }
    for sentence, token in wrong.items():
        ada.token.write_text(token)
        for command, words in {"condor_q": [], "condor_rm": ["1.0"], "condor_submit": []}.items():
            said = await ada(command, *words, typed=WAITS)
            assert (1, "", True) == (said.status, said.out, sentence in said.err), said
            assert 1 == len(said.err.split("\n")) - 1 - said.err.startswith("\n"), said
            assert str(ada.token) in said.err or "_condor_SCITOKENS_FILE" in said.err, said
    ada.token.write_text(here.issuer.token("ada", AUDIENCE, scope="condor:/READ"))
    assert 0 == (await ada("condor_q")).status
    said = await ada("condor_submit", typed=WAITS)
    assert (1, True) == (said.status, "your token or key is limited to less" in said.err), said


async def explained(person: Person, cluster: int, sentence: str) -> None:
    """Wait until the queue says why a job waits."""
    async with asyncio.timeout(PATIENCE_S):
        while sentence not in (said := await person("condor_q", "-better-analyze", f"{cluster}.0")).out:
            assert 0 == said.status, said
            await asyncio.sleep(0.1)


async def test_jobs_stay_at_the_site_that_they_name(here: Facility, tmp_path: Path) -> None:
    """
    As the facility's scheduler pins its workers, by what it reads in `.machine.ad`; why nothing runs at a site that is not there.
    """
    ada = here.person(tmp_path / "ada", "ada")
    text = "executable = /bin/sh\narguments = \"-c 'grep ^SiteName $_CONDOR_MACHINE_AD; sleep 0.2'\"\ntransfer_executable = false\n"
    clusters: dict[str, int] = {}
    for site in SITES:
        pinned = f'requirements = ( SiteName == "{site}" )\noutput = {site}.$(Process)\nrequest_memory = 16\nqueue 6\n'
        clusters[site] = await ada.submitted(text + pinned, "-spool")
    for site, cluster in clusters.items():
        async with asyncio.timeout(PATIENCE_S):
            await here.pool.client.wait(select(cluster))
        assert 0 == (await ada("condor_transfer_data", f"{cluster}")).status
        said = {(ada.home / f"{site}.{number}").read_text() for number in range(6)}
        assert {f'SiteName = "{site}"\n'} == said
    nowhere = await ada.submitted(f'{text}requirements = ( SiteName == "T2_Nowhere" )\nqueue\n')
    await explained(ada, nowhere, 'there SiteName is "T2_Here" in 1, "T2_There" in 1')
    assert 0 == (await ada("condor_rm", f"{nowhere}")).status


MANAGER = """
executable = manager.sh
arguments = {token} {go}
use_oauth_services = kettle
environment = "{variables}"
output = out
error = err
transfer_output_files = ""
queue
"""
MANAGES = """#!/bin/sh -e
export _condor_SCITOKENS_FILE=$BEARER_TOKEN_FILE
echo result > file
printf 'executable = /bin/cat\\ntransfer_executable = false\\narguments = file\\ntransfer_input_files = file\\nqueue' > worker.sub
condor_submit -spool -terse worker.sub
cp $BEARER_TOKEN_FILE $1.new
mv $1.new $1
until test -e $2; do sleep 0.05; done
"""


async def test_a_jobs_own_token_submits_and_does_nothing_else(
    here: Facility, evidence: Evidence, tmp_path: Path
) -> None:
    """
    A job submits a job of its owner's with its derived token, which speaks for nobody else and for no other session, does not
    touch any job, and is over with the attempt.
    """
    ada, bob = here.person(tmp_path / "ada", "ada"), here.person(tmp_path / "bob", "bob")
    strange = await bob.submitted(WAITS)
    own = await ada.submitted(WAITS)
    token, go = evidence.directory / "token", evidence.directory / "go"
    (ada.home / "manager.sh").write_text(MANAGES)
    variables = " ".join(
        f"{name}={value}" for name, value in here.variables("").items() if name != "_condor_SCITOKENS_FILE"
    )
    manager = await ada.submitted(MANAGER.format(token=token, go=go, variables=variables), "-spool")
    async with asyncio.timeout(PATIENCE_S):
        while not token.exists():
            await asyncio.sleep(0.05)
    thief = Person(here, ada.home, token)
    for command in ("condor_rm", "condor_hold", "condor_release", "condor_vacate_job"):
        for victim in (strange, own, manager):
            said = await thief(command, f"{victim}.0")
            assert (1, True) == (said.status, "your token or key is limited to less" in said.err), said
    assert 1 == (await thief("condor_qedit", f"{own}.0", "RequestMemory", "17")).status
    said = await thief("condor_transfer_data", f"{strange}.0")
    assert (1, True) == (said.status, "which is of bob" in said.err), said
    for line, sentence in (
        ('+Owner = "bob"', "jobs cannot be submitted with Owner = 'bob'"),
        ('+KettleSession = "schedd#1.0#1"', "says which running job has submitted a job"),
        ("accounting_group_user = bob", "jobs cannot be charged to bob"),
    ):
        said = await thief("condor_submit", typed=f"{line}\n{WAITS}")
        assert (1, True) == (said.status, sentence in said.err), said
    states = await ada("condor_q", "-allusers", f"{strange}", f"{own}", f"{manager}", "-af", "JobStatus")
    assert ["1", "1", "2"] == states.out.split()
    go.touch()
    async with asyncio.timeout(PATIENCE_S):
        await here.pool.client.wait(select(manager))
    assert 0 == (await ada("condor_transfer_data", f"{manager}")).status
    assert "" == (ada.home / "err").read_text()
    worker = int((ada.home / "out").read_text().partition(".")[0])
    async with asyncio.timeout(PATIENCE_S):
        await here.pool.client.wait(select(worker))
    assert "ada 4\n" == (await ada("condor_q", f"{worker}", "-af", "Owner", "JobStatus")).out
    async with asyncio.timeout(PATIENCE_S):
        while 0 == (said := await thief("condor_q")).status:
            await asyncio.sleep(0.05)
    assert "token.revoked" in said.err, said
    for person, cluster in ((bob, strange), (ada, own)):
        assert 0 == (await person("condor_rm", f"{cluster}")).status


CHECKOUTS = "KETTLE_TEST_CHECKOUTS"
"""A variable: a directory with checkouts of what is in no package registry, each called like its project."""
OF_THE_FACILITY = {
    "HARNESS_REMOTE_JOBQUEUE": "dask-remote-jobqueue",
    "HARNESS_LABEXTENSION": "dask-labextension",
    "HARNESS_DFLEET": "dfleet",
}
checked_out = pytest.mark.skipif(
    CHECKOUTS not in os.environ, reason=f"it is in no package registry: {CHECKOUTS} names no checkouts"
)


@pytest.mark.parametrize(
    ("script", "client"),
    [
        ("dask_jobqueue_cluster.py", "dask-jobqueue"),
        ("labextension_panel.py", "dask-labextension"),
        pytest.param("remote_jobqueue.py", "dask-remote-jobqueue", marks=checked_out),
        pytest.param("facility_extension.py", "dask-labextension", marks=checked_out),
    ],
)
async def test_a_client_of_the_facility(here: Facility, script: str, client: str, tmp_path: Path) -> None:
    """Unmodified, in an environment of its own, with the seven variables and a token."""
    python = await python_of(script, client, tmp_path)
    ada = here.person(tmp_path / "ada", "ada")
    here.has_python(python)
    ada.environ |= {"HARNESS_SITE": SITES[0]}
    if place := os.environ.get(CHECKOUTS):
        ada.environ |= {name: str(Path(place, project)) for name, project in OF_THE_FACILITY.items()}
    said = await ada.drives(SCRIPTS / script, "--timeout", "150", python=python, within_s=400.0)
    assert "PROVEN" == said.out.splitlines()[-1].partition(":")[0], said
    assert 0 == said.status


IN_TURN = ("schedd", "shadow", "negotiator", "collector", "accounting", "iam", "nats", "postgres")
"""All but the machines' own: those keep the jobs."""


@pytest.mark.skipif(LONG not in os.environ, reason=f"it takes minutes: set {LONG}")
async def test_a_client_works_on_while_each_service_is_killed_in_turn(here: Facility, tmp_path: Path) -> None:
    """Scaling, computing and adapting come to the same, and no job is left."""
    python = await python_of("dask_jobqueue_cluster.py", "dask-jobqueue", tmp_path)
    ada = here.person(tmp_path / "ada", "ada")
    here.has_python(python)
    work = ada.drives(SCRIPTS / "dask_jobqueue_cluster.py", "--timeout", "240", python=python, within_s=600.0)
    client = asyncio.create_task(work)
    killed = 0
    while not client.done():
        for service in IN_TURN:
            before = here.pool.kill(service)
            await here.pool.restarted(service, after=before)
            killed += 1
            done, _ = await asyncio.wait([client], timeout=PAUSE_S)
            if done:
                break
    said = await client
    assert "PROVEN" == said.out.splitlines()[-1].partition(":")[0], said
    assert killed > 1
    assert "" == (await ada("condor_q", "-constraint", "JobStatus < 3", "-af:j", "JobStatus")).out
    audit = await here.pool.log_check()
    assert audit.clean, audit.said


@pytest.mark.skipif(LONG not in os.environ, reason=f"it takes minutes: set {LONG}")
@pytest.mark.skipif(find_spec("distributed") is None, reason="Dask is not installed")
async def test_the_demonstration_of_a_facility(tmp_path: Path) -> None:
    """The histogram of the cluster's jobs is the one that is made without them, and none is left."""
    said = await execute(
        [sys.executable, *KETTLE, "demo", "facility", "--jobs", "3", "--json"],
        tmp_path,
        dict(os.environ),
        within_s=300.0,
    )
    assert 0 == said.status, said
    found = msgspec.json.decode(said.out, type=FacilityFigures)
    assert (3, 600_000, 0, True) == (found.parts, found.rows, found.left, found.right)
    assert found.behind > 0 or os.geteuid() != 0


async def test_the_demonstration_of_a_whole_facility(hub_programs: HubPrograms, tmp_path: Path) -> None:
    """
    Somebody signs in at the issuer and gets a notebook, whose cluster reads files through the cache, one of its workers behind NAT; the
    histogram is right, and nothing is left.
    """
    if why := no_xrootd():
        pytest.skip(why)
    environ = {**os.environ, "PATH": hub_programs.path}
    words = [hub_programs.python, *KETTLE, "demo", "facility", "--jobs", "3", "--json", "--whole"]
    faulthandler.cancel_dump_traceback_later()  # what ends a test that hangs knows nothing of this one
    said = await execute(words, tmp_path, environ, within_s=10 * PATIENCE_S)
    if os.geteuid() != 0:
        assert (1, True) == (said.status, "only root makes networks" in said.err), said
        return
    assert 0 == said.status, said
    found = msgspec.json.decode(said.out, type=FacilityFigures)
    assert (3, 1, 0, True, True) == (found.cached, found.behind, found.left, found.login, found.right)
    assert [] == found.missing
