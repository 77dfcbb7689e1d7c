"""Checkpoints on the machine: evictions between two of them, and restarts of the startd while one waits."""

import asyncio
import os
import socket
from pathlib import Path
from typing import Final

import msgspec

from kettle.execution.attempts.job_spec import AttemptId
from kettle.execution.attempts.messages import SOCKET, Hello, MessageReader, decode_to_startd, frame
from kettle.execution.system.linux import parent_of
from kettle.testing.patience import PATIENCE_S
from kettle.testing.submit_side import SubmitSide, output, script
from kettle.testing.worker import WorkerPool
from kettle_services.startd.settings import StartdSettings
from kettle_wire.ads import Ad
from kettle_wire.attempts import Ending
from kettle_wire.commands.startd import (
    CONFIRM,
    DEACTIVATE,
    FETCH_OUTPUT,
    Activation,
    Confirm,
    Deactivate,
    Deactivation,
    FetchOutput,
)
from kettle_wire.worker_reports import Checkpointed, OutputFile, Report, Started

LARGE: Final = 100_000
"""More than a report carries."""


def saving(text: str, **attributes: str) -> Ad:
    """A job that says with exit code 85 that `state` is a checkpoint."""
    return script(text, SuccessCheckpointExitCode=85, TransferCheckpoint="state", **attributes)


async def checkpoint(submitter: SubmitSide, activation: Activation) -> Report:
    return await submitter.hear(activation, lambda report: isinstance(report.body, Checkpointed))


async def confirm(submitter: SubmitSide, report: Report) -> None:
    await submitter.shadow.call(CONFIRM, submitter.startd, Confirm(recorded=[report.key]))


async def test_what_lies_there_between_two_checkpoints_does_not_take_the_place_of_one(
    submitter: SubmitSide, directory: Path
) -> None:
    """
    A job with ON_EXIT_OR_EVICT that is evicted after its first checkpoint sends nothing: not the results without the state.
    """
    ad = saving(
        "[ -e state ] || { echo 1 > state; exit 85; }; echo half > result; sleep 600",
        TransferOutput="result",
        WhenToTransferOutput="ON_EXIT_OR_EVICT",
    )
    claim = await submitter.claim()
    activation = await submitter.start(ad, claim=claim)
    await confirm(submitter, await checkpoint(submitter, activation))
    async with asyncio.timeout(PATIENCE_S):
        while not list((directory / "execute").glob("*/result")):
            await asyncio.sleep(0.01)
    end = Deactivation(
        key=claim, job=activation.job, attempt=1, ending=Ending(code=1004, reason="vacated"), hard=True
    )
    await submitter.shadow.call(DEACTIVATE, submitter.startd, Deactivate(attempts=[end]))
    failed = await submitter.final(activation)

    assert failed.result.exit is None

    assert failed.result.ending is not None
    assert (1004, []) == (failed.result.ending.code, failed.outputs)


async def test_a_checkpoint_that_was_not_saved_goes_with_the_eviction(submitter: SubmitSide) -> None:
    """The state, and not what would be a result."""
    ad = saving("echo 1 > state; echo half > result; exit 85", WhenToTransferOutput="ON_EXIT_OR_EVICT")
    claim = await submitter.claim()
    activation = await submitter.start(ad, claim=claim)
    await checkpoint(submitter, activation)
    end = Deactivation(key=claim, job=activation.job, attempt=1, ending=Ending(code=1004, reason="vacated"))
    await submitter.shadow.call(DEACTIVATE, submitter.startd, Deactivate(attempts=[end]))
    failed = await submitter.final(activation)

    assert failed.result.exit is None

    assert failed.result.ending is not None
    assert {"state": b"1\n"} == {file.name: file.data for file in failed.outputs if file.name == "state"}
    assert "result" not in {file.name for file in failed.outputs}


def first_word(listening: socket.socket) -> Hello:
    """What a starter says to the startd that it finds."""
    connection, _ = listening.accept()
    frames = MessageReader()
    with connection:
        connection.settimeout(PATIENCE_S)
        while data := connection.recv(1 << 16):
            for body in frames.feed(data):
                message = decode_to_startd(body)
                assert isinstance(message, Hello)
                return message
    raise AssertionError("it hung up")


async def test_a_starter_says_its_unsaved_checkpoint_to_the_next_startd_at_once(
    pool: WorkerPool, settings: StartdSettings
) -> None:
    """With its hello, and not when it would repeat it; with one that is saved it does not."""
    submitter = pool.submitter
    async with pool.startd():
        activation = await submitter.start(
            saving(
                "while [ -e state ]; do [ -e go ] && exit; sleep 0.05; done; "
                f"head -c {LARGE} /dev/zero > state; exit 85"
            )
        )
        report = await checkpoint(submitter, activation)
    path = settings.state_path / SOCKET
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        path.chmod(0o777)
        listening.listen()
        listening.settimeout(PATIENCE_S)
        hello = await asyncio.to_thread(first_word, listening)
    path.unlink()
    assert report == hello.checkpoint

    async with pool.startd() as startd:
        async with asyncio.timeout(PATIENCE_S):
            while sum(isinstance(each.body, Checkpointed) for each in submitter.reports) < 2:
                await asyncio.sleep(0.01)
        await confirm(submitter, report)
        (sandbox,) = pool.execute.glob("dir_*")
        (sandbox / "go").touch()
        await submitter.final(activation)
        await startd.drain()


async def test_a_startd_hands_out_what_a_starter_says_with_its_hello(
    pool: WorkerPool, settings: StartdSettings
) -> None:
    """The files of a checkpoint of which it did not know may be fetched from then on."""
    submitter = pool.submitter
    async with pool.startd() as startd:
        activation = await submitter.start(
            script(f"head -c {LARGE} /dev/zero > state; touch ready; while [ -e ready ]; do sleep 0.05; done")
        )
        started = await submitter.hear(activation, lambda report: isinstance(report.body, Started))
        assert isinstance(started.body, Started)
        await pool.until(lambda: list(pool.execute.glob("*/ready")))
        (ready,) = pool.execute.glob("*/ready")
        made = Checkpointed(number=1, at=1.0, outputs=[OutputFile(name="state", mode=0o600, size=LARGE)])
        hello = Hello(
            AttemptId(activation.key.claim, activation.job, activation.attempt),
            parent_of(started.body.pid) or os.getpid(),
            checkpoint=msgspec.structs.replace(started, sequence=started.sequence + 1, body=made),
        )
        _reader, writer = await asyncio.open_unix_connection(settings.state_path / SOCKET)
        writer.write(frame(hello))
        await checkpoint(submitter, activation)
        request = FetchOutput(
            key=activation.key, job=activation.job, attempt=1, name="state", offset=0, length=10
        )
        piece = await submitter.shadow.call(FETCH_OUTPUT, submitter.startd, request)
        writer.close()
        ready.unlink()
        exited = await submitter.final(activation)
        await startd.drain()

    assert bytes(10) == piece.data
    assert b"" == output(exited)
