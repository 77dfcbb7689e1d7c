"""
Jobs that talk with their access point while they run: with HTCondor's own client, unmodified, and with ours.
"""

import asyncio
import shutil
import stat
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.shared_pool import SharedPool
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.commands.chirp import Trouble
from kettle_wire.events import JobCompleted, JobTold
from kettle_wire.jobs import JobId

from .job_log import written

PYTHON = shutil.which("python3", path="/usr/bin:/bin")
PEER = find_spec("htcondor2")

CLIENT = """\
import os, stat
from htchirp import HTChirp
about = os.stat(os.environ["_CONDOR_CHIRP_CONFIG"])
assert stat.S_IMODE(about.st_mode) == 0o600 and about.st_uid == os.getuid(), about
with HTChirp() as chirp:
    assert chirp.whoami() == "CONDOR"
    chirp.set_job_attr("Stage", '"second one"')
    assert chirp.get_job_attr("stage") == '"second one"', chirp.get_job_attr("stage")
    assert chirp.get_job_attr("NoSuch") == "UNDEFINED"
    try:
        chirp.set_job_attr("Owner", '"root"')
    except HTChirp.NotAuthorized:
        pass
    else:
        raise AssertionError("a job has become somebody else's")
    chirp.ulog("half of it is done")
    chirp.set_job_attr_delayed("ChirpProgress", "0.5")
    assert chirp.get_job_attr_delayed("ChirpProgress") == "0.5"
    assert chirp.fetch("in.txt", "local") == 6
    assert open("local").read() == "input\\n"
    with open("big", "wb") as file:
        file.write(os.urandom(3_000_001))
    assert chirp.put("big", "dir/big") == 3_000_001
    assert chirp.fetch("dir/big", "again") == 3_000_001
    assert open("big", "rb").read() == open("again", "rb").read()
    assert chirp.write("line\\n".encode(), "dir/text", "wca") == 5
    assert chirp.read("dir/text", 100) == b"line\\n"
    assert chirp.stat("dir/text")["size"] == 5
    assert chirp.getdir("dir") == ["big", "text"]
    assert chirp.getdir("dir", True)["big"]["size"] == 3_000_001
    chirp.link("text", "dir/link", symbolic=True)
    assert chirp.readlink("dir/link") == b"text"
    chirp.rename("dir/text", "dir/moved")
    chirp.remove("dir/big")
    try:
        chirp.fetch("none", "none")
    except HTChirp.DoesntExist:
        pass
    else:
        raise AssertionError("nothing was fetched")
"""
SHELL = """\
#!/bin/sh
set -e
condor_chirp set_job_attr Stage '"third"'
test "$(condor_chirp get_job_attr Stage)" = '"third"'
condor_chirp set_job_attr_delayed ChirpSeen true
condor_chirp ulog "all is done"
"$_CONDOR_BIN"/condor_chirp fetch in.txt -
echo from the job | condor_chirp put - out.txt
condor_chirp read out.txt 4
condor_chirp getdir -l . > listed
if condor_chirp set_job_attr JobStatus 4 2> refused; then exit 1; fi
grep -q "not authorized" refused
if condor_chirp fetch no/such/file x 2> missing; then exit 1; fi
grep -q "nothing by that name" missing
condor_chirp --help > /dev/null
"""
FLOOD = """\
import os, socket
host, port, cookie = open(os.environ["_CONDOR_CHIRP_CONFIG"]).read().split()
with socket.create_connection((host, int(port))) as chirp, chirp.makefile("rw") as lines:
    for line in [f"cookie {cookie}", *(rf"ulog line\\ {number}" for number in range(80))]:
        lines.write(line + "\\n")
        lines.flush()
        answer = lines.readline().strip()
        print(answer if line.startswith("ulog") else "")
"""

pytestmark = [
    pytest.mark.skipif(PYTHON is None, reason="jobs need a python3 for everybody (Debian: python3)"),
]


async def ended(
    pool: ThrowawayPool, description: str, cwd: Path
) -> tuple[JobId, JobCompleted, list[JobTold]]:
    """Run a job to its end."""
    submitted = await pool.client.submit(description, cwd=cwd)
    job = JobId(submitted.cluster, 0)
    async with asyncio.timeout(PATIENCE_S):
        await pool.client.wait(select(submitted.cluster))
    said = [each.event for each in await pool.client.events(job)]
    (completed,) = (each for each in said if isinstance(each, JobCompleted))
    return job, completed, [each for each in said if isinstance(each, JobTold)]


@pytest.mark.skipif(
    PEER is None, reason="HTCondor's own client comes with its Python package (PyPI: htcondor)"
)
async def test_htcondors_own_client_works_unmodified(pool: ThrowawayPool, tmp_path: Path) -> None:
    """Its ad, its log and its owner's files: what the client does arrives, and is in the record."""
    assert PEER is not None
    assert PEER.origin is not None
    peer = Path(PEER.origin).parent / "htchirp" / "htchirp.py"
    (tmp_path / "client.py").write_text(CLIENT)
    (tmp_path / "in.txt").write_text("input\n")
    (tmp_path / "dir").mkdir()
    job, completed, told = await ended(
        pool,
        f"executable = {PYTHON}\ntransfer_executable = false\narguments = client.py\n"
        f"transfer_input_files = client.py, {peer}\nerror = err\nlog = log\nwant_io_proxy = true\nqueue\n",
        tmp_path,
    )

    assert "" == (tmp_path / "err").read_text()
    assert 0 == completed.exit.code
    assert {"moved", "link"} == {each.name for each in (tmp_path / "dir").iterdir()}
    assert "line\n" == (tmp_path / "dir" / "moved").read_text()
    assert [{"Stage": "second one"}, {}, {"ChirpProgress": 0.5}] == [each.attributes for each in told]
    assert ["half of it is done"] == [note for each in told for note in each.notes]
    async with asyncio.timeout(PATIENCE_S):
        while not (ads := await pool.client.history(select(job.cluster))):
            await asyncio.sleep(0.1)
    (ad,) = ads
    assert ("second one", 0.5) == (ad["Stage"], ad["ChirpProgress"])


async def test_the_program_in_the_sandbox_works(pool: ThrowawayPool, tmp_path: Path) -> None:
    """Found by its name, with errors that say what to do; event 008 is in the user log."""
    script = tmp_path / "job.sh"
    script.write_text(SHELL)
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "in.txt").write_text("input\n")
    _, completed, told = await ended(
        pool,
        "executable = job.sh\noutput = out\nerror = err\nlog = log\nwant_io_proxy = true\nqueue\n",
        tmp_path,
    )

    assert "" == (tmp_path / "err").read_text()
    assert 0 == completed.exit.code
    assert "input\nfrom\n" == (tmp_path / "out").read_text()
    assert "from the job\n" == (tmp_path / "out.txt").read_text()
    assert {"Stage": "third", "ChirpSeen": True} == {
        k: v for each in told for k, v in each.attributes.items()
    }
    log = await written(tmp_path / "log", " all is done\n...")
    assert 1 == sum(line.startswith("008 (") for line in log.splitlines())


async def test_a_job_that_did_not_ask_for_it_only_sets_attributes_without_hurry(
    pool: ThrowawayPool, tmp_path: Path
) -> None:
    """No file of its owner is touched, and its ad is changed under Chirp... only."""
    script = tmp_path / "job.sh"
    script.write_text(
        "#!/bin/sh\ncondor_chirp set_job_attr_delayed ChirpStage '\"here\"' || exit 1\n"
        "for what in 'fetch in.txt x' 'set_job_attr Stage 1' 'ulog hi' 'get_job_attr Owner'; do\n"
        "condor_chirp $what && exit 1; done; exit 0\n"
    )
    script.chmod(0o755)
    (tmp_path / "in.txt").write_text("input\n")
    _, completed, told = await ended(pool, "executable = job.sh\nerror = err\nqueue\n", tmp_path)

    assert 0 == completed.exit.code
    assert [{"ChirpStage": "here"}] == [each.attributes for each in told]
    assert 4 == (tmp_path / "err").read_text().count("invalid request")


async def test_a_job_cannot_flood_the_record(pool: ThrowawayPool, tmp_path: Path) -> None:
    """What is too much is answered "try again", and the job goes on."""
    (tmp_path / "flood.py").write_text(FLOOD)
    _, completed, told = await ended(
        pool,
        f"executable = {PYTHON}\ntransfer_executable = false\narguments = flood.py\n"
        "transfer_input_files = flood.py\noutput = out\nwant_io_proxy = true\nqueue\n",
        tmp_path,
    )

    assert 0 == completed.exit.code
    answers = Counter((tmp_path / "out").read_text().split())
    assert {"0", str(int(Trouble.TRY_AGAIN))} == answers.keys()
    assert 50 < answers["0"] < 80  # 60, and one more for every six seconds
    assert answers["0"] == sum(len(each.notes) for each in told)


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap (Debian package bubblewrap)")
async def test_a_job_in_a_container_talks_as_well(shared_pool: SharedPool, tmp_path: Path) -> None:
    """With the network of the machine, and the helper program in its sandbox."""
    settings: dict[str, dict[str, Any]] = {
        "startd": {"container_always": True, "container_runtimes": ["bubblewrap"]}
    }
    script = tmp_path / "job.sh"
    script.write_text(
        '#!/bin/sh\ncase "$_CONDOR_BIN" in "$_CONDOR_SCRATCH_DIR"/*) ;; *) exit 2;; esac\n'
        "condor_chirp set_job_attr Stage 1 && condor_chirp set_job_attr_delayed ChirpStage 2\n"
    )
    script.chmod(0o755)
    async with shared_pool.lent(cpus=1, settings=settings) as pool:
        description = "executable = job.sh\nerror = err\nwant_io_proxy = true\nqueue\n"
        _, completed, told = await ended(pool, description, tmp_path)

    assert "" == (tmp_path / "err").read_text()
    assert 0 == completed.exit.code
    assert {"Stage": 1, "ChirpStage": 2} == {k: v for each in told for k, v in each.attributes.items()}
