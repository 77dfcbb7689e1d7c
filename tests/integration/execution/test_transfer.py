"""
Files that a machine moves by URL itself, with plugins that run as the job's account; and what jobs keep for later.
"""

import asyncio
import errno
import os
import signal
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest

from kettle.execution.system.linux import start_time
from kettle.testing.processes import KnownProcess, end_parent
from kettle.testing.submit_side import SubmitSide, inline, job_ad, output, script
from kettle.testing.transfer_plugin import install
from kettle.testing.worker import WorkerPool
from kettle.transfer.plugins import xroot
from kettle_services.startd.file_transfer.plugins import find_plugins, plugin_attributes
from kettle_services.startd.settings import StartdSettings
from kettle_wire.attempts import Ending
from kettle_wire.commands.startd import DEACTIVATE, Deactivate, Deactivation
from kettle_wire.machine_abilities import UNLESS_TOLD
from kettle_wire.worker_reports import Started, not_made

JOB_HELD_BY_SCHEDD = 1022


@pytest.fixture
def settings(settings: StartdSettings, directory: Path, request: pytest.FixtureRequest) -> StartdSettings:
    """The machine has a plugin of its owner, for `good://`; its parameter is whom jobs run as."""
    return msgspec.structs.replace(
        settings,
        transfer_plugins=[str(install(directory))],
        job_account=getattr(request, "param", "auto"),
    )


@pytest.fixture
def files(directory: Path) -> Path:
    """A directory where every account may read and write."""
    path = directory / "files"
    path.mkdir()
    path.chmod(0o777)
    return path


class _Web(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}


class _Handler(BaseHTTPRequestHandler):
    @property
    def files(self) -> dict[str, bytes]:
        assert isinstance(self.server, _Web)
        return self.server.files

    def do_GET(self) -> None:
        data = self.files.get(self.path)
        self.send_response(404 if data is None else 200)
        self.send_header("Content-Length", str(len(data or b"")))
        self.end_headers()
        self.wfile.write(data or b"")

    def do_PUT(self) -> None:
        self.files[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its base calls it so
        pass


@pytest.fixture
def web() -> Generator[_Web]:
    with _Web() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("settings", ["auto", "own"], indirect=True)
async def test_input_files_come_by_url(submitter: SubmitSide, files: Path, web: _Web) -> None:
    """From the web, from the machine and by the owner's plugin, into the sandbox, as the job's own files."""
    (files / "local").write_text("local ")
    (files / "site").write_text("site ")
    web.files["/dir/web"] = b"web\n"
    urls = [f"http://127.0.0.1:{web.server_port}/dir/web", f"file://{files}/local", f"good://{files}/site"]
    exited = await submitter.run(
        script("echo more >> local; cat local site web; ls", TransferInput=", ".join(urls))
    )

    assert exited.result.exit is not None, exited
    said = (output(exited) or b"").decode()
    assert said.startswith("local more\nsite web\n"), said
    assert {"local", "site", "web", "_condor_stdout", "_condor_stderr"} == set(said.split()[4:])
    assert ["local"] == [file.name for file in exited.outputs if not file.name.startswith("_")]


@pytest.mark.parametrize(
    ("behaviour", "hold", "code", "subcode", "words"),
    [
        ("fail", True, 13, 3 << 8, "the archive is on strike"),
        ("crash", True, 13, signal.SIGSEGV, "killed by signal 11"),
        ("lie", True, 13, errno.ENOENT, "there is no such file"),
        ("garbage", False, 1007, -1004, "nothing of use"),
        ("silent", False, 1007, -1004, "nothing of it"),
    ],
)
async def test_bad_plugins_hold_their_job_or_send_it_elsewhere(
    submitter: SubmitSide, files: Path, behaviour: str, hold: bool, code: int, subcode: int, words: str
) -> None:
    """By the code table, with a sentence; the job itself never starts."""
    (files / "f").touch()
    activation = await submitter.start(script("true", TransferInput=f"good://{files}/f?{behaviour}"))
    failed = await submitter.final(activation)

    assert failed.result.exit is None

    assert failed.result.ending is not None
    assert (hold, code, subcode) == (
        failed.result.ending.holds,
        failed.result.ending.code,
        failed.result.ending.subcode,
    )
    assert words in failed.result.ending.reason
    assert not [r for r in submitter.reports if r.job == activation.job and isinstance(r.body, Started)]


class TestHurried:
    """A machine whose owner gives plugins little time."""

    @pytest.fixture
    def settings(self, settings: StartdSettings) -> StartdSettings:
        return msgspec.structs.replace(settings, transfer_plugin_lifetime=2.0)

    async def test_a_plugin_that_does_not_come_back_holds_its_job(
        self, submitter: SubmitSide, files: Path
    ) -> None:
        """After its time, which the sentence tells; the job itself never starts."""
        activation = await submitter.start(script("true", TransferInput=f"good://{files}/f?hang"))
        ending = (await submitter.final(activation)).result.ending

        assert ending is not None
        assert (True, 13, errno.ETIME) == (ending.holds, ending.code, ending.subcode)
        assert "after 2 seconds" in ending.reason
        assert not [r for r in submitter.reports if isinstance(r.body, Started)]


async def test_what_a_plugin_leaves_behind_is_ended(
    submitter: SubmitSide, pool: WorkerPool, files: Path
) -> None:
    """Before the job begins nothing of the plugin lives, whatever session it is in."""
    (files / "f").touch()
    exited = await submitter.run(
        script("cat " + str(files / "f.pid"), TransferInput=f"good://{files}/f?leave")
    )

    pid = int(output(exited) or b"0")
    assert pid
    assert not Path(f"/proc/{pid}").exists()


async def test_a_machine_without_the_plugin(submitter: SubmitSide) -> None:
    """It is not the job's fault: the attempt failed, and the job may run elsewhere."""
    failed = await submitter.run(script("true", TransferInput="gopher://host/f"))

    assert failed.result.exit is None

    assert failed.result.ending is not None
    assert (False, 1007, -1001) == (
        failed.result.ending.holds,
        failed.result.ending.code,
        failed.result.ending.subcode,
    )
    assert "no plugin for gopher://" in failed.result.ending.reason


async def test_a_job_is_ended_while_its_files_are_fetched(
    submitter: SubmitSide, pool: WorkerPool, files: Path
) -> None:
    """At once, with the code of who ended it, and the plugin, which would take an hour, is gone."""
    claim = await submitter.claim()
    activation = await submitter.start(script("true", TransferInput=f"good://{files}/f?hang"), claim=claim)
    await pool.until(lambda: pool.processes(f"{pool.home}/good_plugin"))
    end = Deactivation(
        key=claim,
        job=activation.job,
        attempt=1,
        ending=Ending(code=JOB_HELD_BY_SCHEDD, reason="held by its owner"),
    )
    await submitter.shadow.call(DEACTIVATE, submitter.startd, Deactivate(attempts=[end]))
    failed = await submitter.final(activation)

    assert failed.result.exit is None

    assert failed.result.ending is not None
    assert (False, JOB_HELD_BY_SCHEDD) == (failed.result.ending.holds, failed.result.ending.code)
    assert [] == pool.processes(f"{pool.home}/good_plugin")


@pytest.mark.parametrize("settings", ["auto", "own"], indirect=True)
async def test_a_starter_that_dies_leaves_no_plugin(
    submitter: SubmitSide, pool: WorkerPool, files: Path
) -> None:
    """The startd ends what it has left, says that the attempt failed, and removes the sandbox."""
    activation = await submitter.start(script("true", TransferInput=f"good://{files}/f?hang"))
    await pool.until(lambda: pool.processes(f"{pool.home}/good_plugin"))
    (plugin,) = pool.processes(f"{pool.home}/good_plugin")
    with KnownProcess.parent_of(plugin) as runner:
        end_parent(runner.pid)
    failed = await submitter.final(activation)

    assert failed.result.exit is None

    assert failed.result.ending is not None
    assert (False, 1007) == (failed.result.ending.holds, failed.result.ending.code)
    assert [] == pool.processes(f"{pool.home}/good_plugin")
    await pool.until(lambda: start_time(runner.pid) is None)
    await pool.until(lambda: not list(pool.execute.glob("dir_*")))


async def test_a_job_brings_its_own_plugin(submitter: SubmitSide, files: Path) -> None:
    """An input file, run before those of the machine; what it does wrong holds the job."""
    (files / "f").write_text("through my own")
    own = inline("mine", install(files, "mine").read_bytes(), mode=0o755)
    ad = script("cat f", TransferInput=f"fine://{files}/f", TransferPlugins="fine=bin/mine")
    assert b"through my own" == output(await submitter.run(ad, inputs=[own]))

    garbage = script("true", TransferInput=f"fine://{files}/f?garbage", TransferPlugins="fine=bin/mine")
    failed = await submitter.run(garbage, inputs=[own])
    assert failed.result.exit is None
    assert failed.result.ending is not None
    assert (True, 13, errno.EPROTO) == (
        failed.result.ending.holds,
        failed.result.ending.code,
        failed.result.ending.subcode,
    )


async def test_results_go_to_urls(submitter: SubmitSide, files: Path, web: _Web) -> None:
    """All to a destination, one by a remap of its own; the standard streams come home."""
    ad = script(
        "echo said; echo one > one; echo two > two; mkdir d; echo three > d/three",
        TransferOutput="one,two,d",
        TransferOutputRemaps=f"two = good://{files}/second",
        OutputDestination=f"http://127.0.0.1:{web.server_port}/results/",
    )
    exited = await submitter.run(ad)

    assert exited.result.exit is not None, exited
    assert ["_condor_stderr", "_condor_stdout"] == sorted(file.name for file in exited.outputs)
    assert {"/results/one": b"one\n", "/results/d/three": b"three\n"} == web.files
    assert "two\n" == (files / "second").read_text()
    assert exited.result.ending is None


async def test_results_that_cannot_be_sent(submitter: SubmitSide, files: Path) -> None:
    """The other results and the streams come home all the same, with what is wrong."""
    ad = script(
        "echo said; echo one > one; echo two > two",
        TransferOutputRemaps=f"two = good://{files}/x?fail",
    )
    exited = await submitter.run(ad)

    assert exited.result.exit is not None, exited
    assert (b"said\n", b"one\n") == (output(exited), output(exited, "one"))
    assert exited.result.ending is not None
    assert (12, 3 << 8) == (exited.result.ending.code, exited.result.ending.subcode)
    assert "sending two to good://" in exited.result.ending.reason


@pytest.mark.parametrize(
    ("text", "failure", "expected"),
    [("exit 0", "why", {"r", "why"}), ("exit 3", "", set[str]()), ("exit 3", "why, not_there", {"why"})],
)
async def test_on_success(submitter: SubmitSide, text: str, failure: str, expected: set[str]) -> None:
    """
    A job that failed sends its streams, what it names for that case as far as it is there, and nothing else.
    """
    left = f"echo x; echo y > r; echo z > why; {text}"
    exited = await submitter.run(script(left, WhenToTransferOutput="ON_SUCCESS", FailureFiles=failure))

    assert exited.result.exit is not None
    assert exited.result.ending is None
    assert expected == {file.name for file in exited.outputs if not file.name.startswith("_")}
    assert b"x\n" == output(exited)


async def test_nothing_leaves_the_sandbox(submitter: SubmitSide, files: Path) -> None:
    """A list that leads out is told as missing; the other results come."""
    (files / "f").touch()
    exited = await submitter.run(script("echo y > r", TransferOutput=f"r, {files}/f, ../x"))

    assert exited.result.exit is not None
    assert b"y\n" == output(exited, "r")
    assert not_made([f"{files}/f", "../x"]) == exited.result.ending


async def test_a_job_runs_where_its_files_are(submitter: SubmitSide, files: Path) -> None:
    """With should_transfer_files = NO it begins in its directory, and its streams are written there."""
    (files / "run.sh").write_text("#!/bin/sh\necho here: $(pwd); read x; echo $x >&2; echo z > made\n")
    (files / "run.sh").chmod(0o755)
    (files / "in").write_text("given\n")
    ad = job_ad(Cmd="run.sh", In="in", Iwd=str(files), ShouldTransferFiles="NO", TransferExecutable=True)
    exited = await submitter.run(ad)

    assert exited.result.exit is not None, exited
    assert [] == exited.outputs
    assert f"here: {files}\n" == (files / "out").read_text()
    assert ("given\n", "z\n") == ((files / "err").read_text(), (files / "made").read_text())


async def test_a_place_that_cannot_be_entered(submitter: SubmitSide) -> None:
    """Is code 14, and the sentence names it."""
    failed = await submitter.run(job_ad(Cmd="/bin/true", Iwd="/nonexistent", ShouldTransferFiles="NO"))

    assert failed.result.exit is None

    assert failed.result.ending is not None
    assert (True, 14, errno.ENOENT) == (
        failed.result.ending.holds,
        failed.result.ending.code,
        failed.result.ending.subcode,
    )
    assert "/nonexistent" in failed.result.ending.reason


async def test_an_evicted_job_keeps_what_it_has_made(submitter: SubmitSide, pool: WorkerPool) -> None:
    """
    With ON_EXIT_OR_EVICT, new files come with the report, not its streams; the next run has them, and at its end they
    are results though it did not touch them.
    """
    claim = await submitter.claim()
    text = "trap 'echo saved > state; exit 1' TERM; echo partial > part; while :; do sleep 0.1; done"
    activation = await submitter.start(
        script(text, WhenToTransferOutput="ON_EXIT_OR_EVICT", Patient=True), claim=claim
    )
    await pool.until(lambda: [part for part in pool.execute.glob("dir_*/part") if part.stat().st_size])
    end = Deactivation(key=claim, job=activation.job, attempt=1, ending=Ending(code=1004, reason="vacated"))
    await submitter.shadow.call(DEACTIVATE, submitter.startd, Deactivate(attempts=[end]))
    failed = await submitter.final(activation)

    assert failed.result.exit is None

    assert failed.result.ending is not None
    assert {"part": b"partial\n", "state": b"saved\n"} == {file.name: file.data for file in failed.outputs}

    saved = [
        msgspec.structs.replace(inline(file.name, file.data or b""), saved=True) for file in failed.outputs
    ]
    again = await submitter.run(
        script("cat state; echo new > other", WhenToTransferOutput="ON_EXIT_OR_EVICT"), inputs=saved
    )
    assert b"saved\n" == output(again)
    assert b"partial\n" == output(again, "part")


async def test_without_on_evict_nothing_is_kept(submitter: SubmitSide) -> None:
    """ON_EXIT, the default, sends nothing of a job that was evicted."""
    claim = await submitter.claim()
    activation = await submitter.start(script("echo partial > part; sleep 600"), claim=claim)
    await submitter.hear(activation, lambda report: isinstance(report.body, Started))
    end = Deactivation(key=claim, job=activation.job, attempt=1, ending=Ending(code=1004, reason="vacated"))
    await submitter.shadow.call(DEACTIVATE, submitter.startd, Deactivate(attempts=[end]))
    failed = await submitter.final(activation)

    assert failed.result.exit is None

    assert failed.result.ending is not None
    assert [] == failed.outputs


async def test_a_file_that_many_jobs_want_is_moved_once(submitter: SubmitSide) -> None:
    """Ten jobs at once and ten later: each piece of the file is asked for once."""
    data = os.urandom(3 << 20)
    file = submitter.file("shared", data)
    ad = script("wc -c < shared")
    for _ in range(2):
        claims = await asyncio.gather(*(submitter.claim() for _ in range(4)))
        started = [await submitter.start(ad, claim=claim, inputs=[file]) for claim in claims]
        ended = await asyncio.gather(*(submitter.final(activation) for activation in started))
        assert {b"3145728\n"} == {output(each) for each in ended}

    pieces = -(-len(data) // (512 * 1024))
    assert pieces == len(submitter.fetched)


async def test_files_wait_for_their_turn_and_block_nobody(submitter: SubmitSide) -> None:
    """
    The shadow lets one job go first.  The other holds nothing meanwhile that the first one needs: both want one file.
    """
    files = [submitter.file(name, os.urandom(200_000)) for name in ("mine", "shared", "yours")]
    claims = [await submitter.claim() for _ in range(2)]
    submitter.first = submitter.activation(claims[0], script("cat mine shared | wc -c"), inputs=files[:2])
    second = submitter.activation(claims[1], script("cat shared yours | wc -c"), inputs=files[1:])
    await submitter.activate(second)
    await submitter.activate(submitter.first)

    assert b"400000\n" == output(await submitter.final(submitter.first))
    submitter.first = None
    assert b"400000\n" == output(await submitter.final(second))


async def test_a_transfer_that_was_killed_in_the_middle_begins_again(pool: WorkerPool) -> None:
    """
    The startd ends while it fetches; the next one reports the attempt as lost, and fetches cleanly for the next attempt.
    """
    submitter, data = pool.submitter, os.urandom(2 << 20)
    file = submitter.file("large", data)
    submitter.pieces = 1
    async with pool.startd():
        activation = await submitter.start(script("wc -c < large"), inputs=[file])
        await pool.until(lambda: len(submitter.fetched) > 1)
    submitter.resumed.set()
    async with pool.startd() as startd:
        failed = await submitter.final(activation)
        assert failed.result.exit is None
        assert failed.result.ending is not None
        assert not failed.result.ending.holds
        exited = await submitter.run(script("wc -c < large"), inputs=[file])
        assert b"2097152\n" == output(exited)
        assert [] == [path for path in (pool.home / "startd" / "cache").iterdir() if path.suffix]
        await startd.drain()


@pytest.mark.parametrize(("program", "expected"), [("/bin/true", True), ("/bin/false", False), ("", False)])
async def test_xrootd_is_advertised_where_its_program_works(
    settings: StartdSettings, monkeypatch: pytest.MonkeyPatch, program: str, expected: bool
) -> None:
    """A machine without it does not take jobs whose files it could not fetch."""
    monkeypatch.setattr(xroot, "XRDCP", program)
    monkeypatch.setattr(xroot, "XRDFS", "/bin/true")
    ad = plugin_attributes(await find_plugins(settings), bus="nats://127.0.0.1:4222")

    methods = str(ad["HasFileTransferPluginMethods"]).split(",")
    assert expected is ("root" in methods)
    usual = str(UNLESS_TOLD["HasFileTransferPluginMethods"]).split(",")
    of_owner = {"good", "fine"}
    assert usual == [method for method in methods if "root" not in method and method not in of_owner]
    assert UNLESS_TOLD["HasPerFileEncryption"] is ad["HasPerFileEncryption"]


@pytest.fixture
def unfit(directory: Path) -> list[str]:
    """Programs that are no plugins."""
    texts = {"silent": "#!/bin/sh\n", "failing": "#!/bin/sh\nexit 3\n", "talking": "#!/bin/sh\necho hello\n"}
    paths = [directory / name for name in texts]
    for path in paths:
        path.write_text(texts[path.name])
        path.chmod(0o755)
    return [*map(str, paths), "/nonexistent/plugin"]


async def test_what_is_no_plugin_is_not_advertised(settings: StartdSettings, unfit: list[str]) -> None:
    """
    The owner's plugins are asked at the start; what does not answer well is left out, and the others go before ours.
    """
    chosen = msgspec.structs.replace(
        settings,
        transfer_plugins=[*unfit, *settings.transfer_plugins],
        transfer_methods=("file", "http", "https"),
    )
    plugins = await find_plugins(chosen)

    assert [("good", "fine"), ("file",), ("http", "https")] == [plugin.methods for plugin in plugins]
    ad = plugin_attributes(plugins, bus="nats://127.0.0.1:4222")
    assert ("good,fine,file,http,https", True) == (
        ad["HasFileTransferPluginMethods"],
        ad["HasPerFileEncryption"],
    )
    for bus, private in (("nats://bus.site:4222", False), ("tls://bus.site:4222", True)):
        assert private == plugin_attributes(plugins, bus=bus)["HasPerFileEncryption"]
