"""What probes make of a machine."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import pytest

from kettle.execution.containers.probe import ProbeOrder
from kettle.execution.site_probes.checks import ProbeTask, look
from kettle.execution.site_probes.declared import (
    AnyProbe,
    ContainerProbe,
    CvmfsProbe,
    Finding,
    ImageProbe,
    ProgramProbe,
    XrootdProbe,
)
from kettle.runtime import SettingsError
from kettle_services.startd.domain.ads import slot_ad
from kettle_services.startd.domain.policy.evaluation import evaluate
from kettle_services.startd.domain.probes import probe_attributes, probe_trouble
from kettle_services.startd.settings import StartdSettings
from kettle_wire.codes import VacateCode

from .hosts import KEY, NOW, activated, activation, claimed, machine

CMS = CvmfsProbe(repository="cms.cern.ch", required=True)
ATLAS = CvmfsProbe(repository="atlas.cern.ch")
CACHE = XrootdProbe(url="root://xcache.site:1094")
IMAGE = ImageProbe(path="/images/a.sif")
WELL = Finding(at=7.5)
ILL = Finding(why="it hangs", at=9.0)


def found_by(probe: AnyProbe) -> Finding:
    """Run a probe here, as its process does."""
    order = ProbeOrder(names=[], place="/", account=None)
    task = msgspec.json.encode(ProbeTask(probe=probe, account=None, containers=order))
    return look(msgspec.json.decode(task, type=ProbeTask))


def program(directory: Path, text: str, prefix: str = "") -> ProgramProbe:
    path = directory / "probe.sh"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return ProgramProbe(command=[str(path)], prefix=prefix)


def test_a_required_probe_that_was_not_run_yet_closes_the_machine() -> None:
    """
    A machine that has just started is in matching only when it is known to be well; others do not matter.
    """
    assert "CVMFS repository cms.cern.ch: it has not been tried" in probe_trouble([CMS, ATLAS], {})
    assert "" == probe_trouble([CMS, ATLAS], {CMS.label: WELL, ATLAS.label: ILL})
    named = CvmfsProbe(repository="cms.cern.ch", required=True, name="software")
    assert "a probe of the machine fails: software: it hangs" == probe_trouble([named], {"software": ILL})


def test_what_is_advertised_says_what_is_there_and_since_when() -> None:
    """HasCVMFS is true only if all repositories are there, and each is told by itself, with its age."""
    ad = probe_attributes(
        [CMS, ATLAS, CACHE, IMAGE],
        {CMS.label: WELL, ATLAS.label: ILL, CACHE.label: WELL, IMAGE.label: ILL},
        (),
    )

    assert {
        "HasCVMFS": False,
        "CVMFSRepositories": "cms.cern.ch",
        "HAS_CVMFS_cms_cern_ch": True,
        "HAS_CVMFS_atlas_cern_ch": False,
        "HasXRootDCache": True,
        "XRootDCache": "root://xcache.site:1094",
        "ContainerImages": "",
        "ProbesFailed": "CVMFS repository atlas.cern.ch: it hangs; image /images/a.sif: it hangs",
        "ProbesLastChecked": 7,
        "CVMFS_cms_cern_ch_LastChecked": 7,
        "CVMFS_atlas_cern_ch_LastChecked": 9,
    } == ad


def test_containers_that_run_no_more_are_taken_back() -> None:
    """What was found at the start of the startd does not count then."""
    probe = ContainerProbe()
    assert probe_attributes([probe], {"containers": ILL}, ())["HasContainer"] is False
    assert "HasContainer" not in probe_attributes([probe], {"containers": WELL}, ())


def test_no_probe_says_what_slots_say_by_themselves() -> None:
    """Names are the same in any case."""
    probe = ProgramProbe(command=["/bin/site"])
    told = {probe.label: Finding(attributes={"state": "Owner", "Rack": "a"})}
    assert {"Rack": "a"} == {
        name: value
        for name, value in probe_attributes([probe], told, {"state"}).items()
        if "Last" not in name
    }


def test_an_unfit_machine_is_not_matched_and_ends_claims_that_wait() -> None:
    """A running job goes on; what is local has nothing to do with the site."""
    host = machine()
    claimed(host)
    host.unfit = "a probe of the machine fails: x"
    host.probed |= {"HasCVMFS": False}

    ad = slot_ad(host, host.facts.slots[0], now=0.0)
    assert (False, host.unfit, False) == (ad["Requirements"], ad["Trouble"], ad["HasCVMFS"])
    assert VacateCode.ActivationRefusedUnhealthy == activated(host, activation())
    assert [KEY.claim] == [getattr(change, "claim", "") for change in evaluate(host, NOW)]
    assert "" == host.shut_for(local=True)

    host.unfit = ""
    assert 0 == activated(host, activation())
    host.unfit = "again"
    assert [] == evaluate(host, NOW)


def lives(pid: int) -> bool:
    """Whether there is such a process that was not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (
        FileNotFoundError,
        ProcessLookupError,
    ):  # the latter if it is gone between the opening and the reading
        return False


def test_what_a_program_leaves_running_ends_with_it(tmp_path: Path) -> None:
    """It would be one more each time."""
    probe = program(tmp_path, "sleep 1000 >/dev/null 2>&1 </dev/null &\necho Pid = $!")
    order = ProbeOrder(names=[], place="/", account=None)
    task = msgspec.json.encode(ProbeTask(probe=probe, account=None, containers=order))
    done = subprocess.run(
        [sys.executable, "-P", "-m", "kettle.execution.site_probes"],
        input=task,
        capture_output=True,
        check=False,
        start_new_session=True,
    )
    found = msgspec.json.decode(done.stdout, type=Finding)
    left = found.attributes["Pid"]
    assert isinstance(left, int)
    patience = 2000
    while lives(left) and patience:
        time.sleep(0.01)
        patience -= 1
    if not patience:
        os.kill(left, signal.SIGKILL)
    assert patience


def test_a_repository_is_read(tmp_path: Path) -> None:
    """A known file, or its top directory."""
    repository = tmp_path / "cms.cern.ch"
    there = CvmfsProbe(repository="cms.cern.ch", mount=str(tmp_path))
    file = CvmfsProbe(repository="cms.cern.ch", mount=str(tmp_path), file="etc/known")
    assert "No such file or directory" in found_by(there).why
    repository.mkdir()
    assert "it is not mounted" in found_by(there).why
    (repository / "etc").mkdir()
    assert "" == found_by(there).why
    assert "known cannot be read" in found_by(file).why
    (repository / "etc" / "known").write_text("x")
    os.setxattr(repository, "user.revision", b"118")
    assert {"CVMFS_cms_cern_ch_REVISION": 118} == found_by(file).attributes


def test_an_image_is_a_file_or_a_tree_with_something_in_it(tmp_path: Path) -> None:
    """One that is empty is as good as none."""
    for name, wanted in (
        ("none", "cannot be read"),
        ("empty", "is empty"),
        ("tree", "is empty"),
        ("full", ""),
    ):
        path = tmp_path / name
        if name == "tree":
            path.mkdir()
        elif name != "none":
            path.write_text("x" * (name == "full"))
        assert wanted in found_by(ImageProbe(path=str(path))).why


@contextmanager
def answering(said: bytes) -> Generator[str]:
    """A server that says the same to everybody."""

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with closing(connection):
            connection.recv(20)
            connection.sendall(said)

    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        yield f"root://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def test_a_cache_answers_in_its_protocol() -> None:
    """Something else that listens there is none."""
    good = bytes.fromhex("00000000000000080000050000000001")
    with answering(good) as url:
        assert "" == found_by(XrootdProbe(url=url)).why
    with answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as url:
        assert f"what answers at {url} is no server of XRootD" == found_by(XrootdProbe(url=url)).why
    assert "cannot be reached: Connection refused" in found_by(XrootdProbe(url=url)).why


def test_a_program_prints_attributes_or_says_why_not(tmp_path: Path) -> None:
    """As for STARTD_CRON, and what it says last is the reason when it fails."""
    good = program(tmp_path, 'echo "Rack = \\"$RACK\\""; echo "Fast = Mips > 7"; echo - end', prefix="Site_")
    told = found_by(msgspec.structs.replace(good, environment={"RACK": "b7"}))
    assert ("", {"Site_Rack", "Site_Fast"}) == (told.why, set(told.attributes))
    assert "b7" == told.attributes["Site_Rack"]
    assert (
        "it ended with status 3: the fan is broken"
        == found_by(program(tmp_path, "echo the fan is broken; exit 3")).why
    )
    assert (
        "line 1 of what it prints is not `Name = expression`" == found_by(program(tmp_path, "echo no ad")).why
    )
    assert "line 1 of what it prints" in found_by(program(tmp_path, "echo 'A = (1'")).why
    assert "more than 64 KiB" in found_by(program(tmp_path, "head -c 100000 /dev/zero")).why


@pytest.mark.parametrize(
    ("probes", "where"),
    [
        ('[{"kind": "cvmfs"}]', "repository"),
        ('[{"kind": "nfs", "path": "/a"}]', "kind"),
        ('[{"kind": "image", "path": "a"}]', "path"),
        ('[{"kind": "program", "command": ["a"]}]', "absolute path"),
        ('[{"kind": "cvmfs", "repository": "a", "perod": 3}]', "perod"),
        ('[{"kind": "xrootd", "url": "http://a"}]', "url"),
    ],
)
def test_a_probe_that_makes_no_sense_is_refused(probes: str, where: str) -> None:
    """With the variable and the place in it."""
    with pytest.raises(SettingsError, match=f"KETTLE_STARTD_PROBES.*{where}"):
        StartdSettings.load("startd", environ={"KETTLE_STARTD_PROBES": probes})
