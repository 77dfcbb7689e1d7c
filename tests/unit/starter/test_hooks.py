"""What becomes of a job after a hook, and what a hook is told."""

import os
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.unit.own_process import alone, bystander

from kettle.execution.attempts.job_spec import JobHooks, JobSpec
from kettle.execution.job_environment.job_ad import JobAd
from kettle_services.startd.settings import StartdSettings
from kettle_services.startd.starters.orders import hooks_of
from kettle_services.starter import hooks
from kettle_services.starter.execution.process_tree import ProcessTree
from kettle_services.starter.file_transfer.progress import Transfers
from kettle_services.starter.hooks import HookResult, HookRun, Updates, exit_attributes, run, verdict, word
from kettle_services.starter.hooks_and_transfers import HooksAndTransfers, Orders
from kettle_wire.ads import Ad
from kettle_wire.attempts import Ending
from kettle_wire.events import Usage


@pytest.fixture(autouse=True)
def others() -> Generator[None]:
    """Processes of other tests, which go on."""
    with bystander():
        yield


PREPARING = cast("HookRun", SimpleNamespace(hook="prepare_job"))
ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


def script(place: Path, text: str) -> list[str]:
    path = place / "hook"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return [str(path)]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (HookResult(), None),
        (HookResult(status=3, error="no"), (True, 19, 3)),
        (HookResult(status=-9), (True, 19, -9)),
        (HookResult(status=-9, late=True), (False, 1007, 0)),
        (HookResult(trouble="it is no ad"), (False, 1007, 0)),
    ],
)
def test_what_a_hook_decides_holds_and_what_is_wrong_with_it_does_not(
    told: HookResult, expected: Any
) -> None:
    """HTCondor's code 19 with the exit status, or back into the queue."""
    ending = verdict(PREPARING, told)
    assert expected == (None if ending is None else (ending.holds, ending.code, ending.subcode))


def test_a_hook_is_told_how_the_job_ended() -> None:
    """By a word, and in the ad."""
    endings = [None, *(Ending(code=code, reason="") for code in (34, 1023, 1011))]

    assert ["exit", "hold", "remove", "evict"] == [word(ending) for ending in endings]
    assert {"ExitBySignal": False, "ExitCode": 3}.items() <= exit_attributes(3, Usage()).items()
    assert {"ExitBySignal": True, "ExitSignal": 9}.items() <= exit_attributes(-9, Usage()).items()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cat", HookResult(changes={"Cmd": "/bin/true"})),
        ("echo no >&2; exit 4", HookResult(status=4, error="no")),
        ("kill -9 $$", HookResult(status=-9)),
        ("yes | head -c 300000", HookResult(trouble="it says more than 32768 bytes")),
        ("exec 1>&- 2>&-; sleep 0.2", HookResult()),
    ],
)
def test_what_a_hook_says_is_understood(tmp_path: Path, text: str, expected: HookResult) -> None:
    """Its words, its exit status and its complaints; no more of it is kept than is understood."""
    assert expected == run(script(tmp_path, text), 'Cmd = "/bin/true"\n', ENVIRONMENT, 20.0)


def test_a_hook_that_hangs_is_ended(tmp_path: Path) -> None:
    """After its time, though it goes on to talk."""
    told = run(script(tmp_path, "while :; do echo on and on; done"), "", ENVIRONMENT, 0.3)

    assert (True, -9) == (told.late, told.status)


def test_a_hook_that_is_none_is_told(tmp_path: Path) -> None:
    """With what the system says."""
    told = run([str(tmp_path / "none")], "", ENVIRONMENT, 1.0)
    assert os.strerror(2) in told.trouble


@pytest.mark.parametrize(
    ("chosen", "default", "own", "expected"),
    [
        ("", "", "a", "A"),
        ("", "", "none", None),
        ("", "b", "none", "B"),
        ("", "b", None, "B"),
        ("b", "", "a", "B"),
        ("none", "", "a", None),
    ],
)
def test_the_machines_word_goes_before_the_jobs(
    chosen: str, default: str, own: str | None, expected: str | None
) -> None:
    """Then the job's, then the default; keywords are the same in any case."""
    sets = {name: JobHooks(prepare_job=[name]) for name in "AB"}
    settings = StartdSettings(job_hooks=sets, job_hook_keyword=chosen, default_job_hook_keyword=default)
    ad: Ad = {} if own is None else {"HookKeyword": own}

    found = hooks_of(settings, ad)
    assert expected == (None if found is None else found.prepare_job[0])


class Ran:
    """A hook that was started."""

    pids = iter(range(1000, 2000))

    def __init__(self, *_: object) -> None:
        self.pid, self.closed = next(self.pids), 0
        RAN.append(self)

    def close(self) -> None:
        self.closed += 1


RAN: list[Ran] = []


def test_updates_leave_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Each is heard no more when the next one begins, or the job ends; and the program's next life has its own.
    """
    RAN.clear()
    monkeypatch.setattr(hooks, "HookRun", Ran)
    told = SimpleNamespace(hooks=JobHooks(timeout=1.0, update_job_info=["/hook"]))
    updates = Updates(cast("JobSpec", told), JobAd({}), None)
    tree = ProcessTree(1, None)
    updates.tell(tree, Usage())
    updates.tell(tree, Usage())
    assert [0] == [run.closed for run in RAN]
    tree.visitors[RAN[0].pid] = 0
    updates.tell(tree, Usage())
    assert [1, 0] == [run.closed for run in RAN]
    updates.close()
    updates.tell(tree.successor(2), Usage())
    updates.close()
    updates.close()
    assert [1, 1, 1] == [run.closed for run in RAN]


@alone
def test_a_hook_is_heard_no_more_if_its_end_was_not_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever happened meanwhile, its descriptor is closed."""

    def fails(_tree: ProcessTree) -> None:
        raise OSError("no descriptors")

    RAN.clear()
    monkeypatch.setattr(hooks, "HookRun", Ran)
    told = cast("JobSpec", SimpleNamespace(hooks=JobHooks(timeout=1.0, prepare_job=["/hook"])))
    orders = Orders(watch=fails, wait=lambda _: None, ending=lambda: None, expose=lambda: None)
    with pytest.raises(OSError, match="no descriptors"):
        HooksAndTransfers(told, JobAd({}), None, cast("Transfers", None), orders).run_prepare_hook(
            "prepare_job"
        )
    assert [1] == [run.closed for run in RAN]
