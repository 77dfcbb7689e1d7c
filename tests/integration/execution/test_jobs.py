"""Jobs as a submit side sees them: what goes in, what comes out, and how they end."""

import os
import signal

import pytest

from kettle.testing.submit_side import SubmitSide, inline, job_ad, output, script
from kettle.testing.worker import WorkerPool
from kettle_wire.ads import Expr
from kettle_wire.attempts import Ending
from kettle_wire.commands.startd import (
    CONFIRM,
    DEACTIVATE,
    FETCH_OUTPUT,
    ClaimKey,
    Confirm,
    Deactivate,
    Deactivation,
    FetchOutput,
)
from kettle_wire.worker_reports import FinalReport, Measured, Report, Started, not_made


async def test_a_program_runs_and_its_exit_code_comes_back(submitter: SubmitSide) -> None:
    """/bin/true exits with 0, is reported as started before, and has used something."""
    activation = await submitter.start(job_ad(Cmd="/bin/true"))

    exited = await submitter.final(activation)

    assert exited.result.exit is not None
    assert (0, None) == (exited.result.exit.code, exited.result.exit.signal)
    assert exited.result.usage.wall > 0
    assert exited.result.usage.memory_kib > 0
    kinds = [type(r.body) for r in submitter.reports if r.job == activation.job]
    assert [Started, FinalReport] == kinds[:2]


@pytest.mark.parametrize(
    ("text", "code", "number"),
    [("exit 3", 3, None), ("kill -9 $$", None, signal.SIGKILL), ("kill -15 $$", None, signal.SIGTERM)],
)
async def test_the_end_of_a_job_is_told_as_it_was(
    submitter: SubmitSide, text: str, code: int | None, number: int | None
) -> None:
    """Exactly one of exit code and signal is set."""
    exited = await submitter.run(script(text))

    assert exited.result.exit is not None
    assert (code, number) == (exited.result.exit.code, exited.result.exit.signal)


async def test_standard_streams_come_back(submitter: SubmitSide) -> None:
    """What a job writes to its standard streams is in the report under HTCondor's names."""
    exited = await submitter.run(script("echo to out; echo to err >&2"))

    assert b"to out\n" == output(exited)
    assert b"to err\n" == output(exited, "_condor_stderr")


async def test_both_streams_in_one_file_keep_their_order(submitter: SubmitSide) -> None:
    """With the same name for output and error there is one file."""
    exited = await submitter.run(script("echo one; echo two >&2; echo three", Out="log", Err="log"))

    assert b"one\ntwo\nthree\n" == output(exited)
    assert output(exited, "_condor_stderr") is None


async def test_a_transferred_executable_gets_arguments_environment_and_input(submitter: SubmitSide) -> None:
    """
    The executable comes as an input file; arguments and environment are HTCondor's strings; stdin is a file.
    """
    program = b'#!/bin/sh\nread line\necho "$1|$2|$COLOR|$line"\n'
    ad = job_ad(
        Cmd="/home/alice/run.sh",
        TransferExecutable=True,
        Arguments="'a b' c",
        Environment="COLOR='light blue'",
        In="in.txt",
    )
    files = [inline("run.sh", program, mode=0o755), inline("in.txt", b"hello\n")]

    exited = await submitter.run(ad, inputs=files)

    assert b"a b|c|light blue|hello\n" == output(exited)


async def test_the_environment_is_htcondors_and_nothing_of_ours(
    submitter: SubmitSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job sees scratch directory, slot, ads and thread counts, and nothing of the daemon's environment."""
    exited = await submitter.run(script("env; pwd"))

    text = (output(exited) or b"").decode()
    variables = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    scratch = text.splitlines()[-1]
    assert {scratch} == {variables[name] for name in ("_CONDOR_SCRATCH_DIR", "TMPDIR", "TEMP", "TMP")}
    assert ("slot1_1", "HTCondor", "1") == (
        variables["_CONDOR_SLOT"],
        variables["BATCH_SYSTEM"],
        variables["OMP_NUM_THREADS"],
    )
    assert f"{scratch}/.job.ad" == variables["_CONDOR_JOB_AD"]
    assert not {name for name in variables if name.startswith(("KETTLE", "PYTHON_", "VIRTUAL"))} - {
        "PYTHON_CPU_COUNT"
    }
    assert "PYTEST_CURRENT_TEST" not in variables


async def test_a_job_inherits_no_descriptor_but_its_streams(submitter: SubmitSide) -> None:
    """Neither the line to the startd nor the lifeline can be seen from inside a job."""
    exited = await submitter.run(script("ls /proc/$$/fd"))

    assert {"0", "1", "2"} == set((output(exited) or b"").decode().split())


async def test_a_job_starts_with_clean_signals_and_limits(submitter: SubmitSide) -> None:
    """Nothing is ignored or blocked, the umask is the usual one, and there are no core files."""
    exited = await submitter.run(script("grep -E '^Sig(Blk|Ign)' /proc/self/status; umask; ulimit -c"))

    _, blocked, _, ignored, umask, core = (output(exited) or b"").decode().split()
    internal = 0b11 << 31  # the C library's own two, which every program that it starts ignores
    assert (0, 0, "0022", "0") == (int(blocked, 16), int(ignored, 16) & ~internal, umask, core)


async def test_the_ads_lie_in_the_sandbox_in_old_syntax(submitter: SubmitSide) -> None:
    """`.job.ad` and `.machine.ad` are there to be read by the job."""
    exited = await submitter.run(script("cat .job.ad .machine.ad", Note='say "x"', Rank=Expr("Memory + 1")))

    lines = (output(exited) or b"").decode().splitlines()
    assert 'Note = "say \\"x\\""' in lines
    assert "Rank = Memory + 1" in lines
    assert 'Name = "slot1_1@worker"' in lines


async def test_new_and_changed_files_come_back_and_nothing_else(submitter: SubmitSide) -> None:
    """
    Without a list: what is new or modified at the top level; not the executable, not inputs that are as they were.
    """
    text = b"#!/bin/sh\necho new > new; echo more >> changed; mkdir d; echo deep > d/deep; ln -s new link\n"
    ad = job_ad(Cmd="run.sh", TransferExecutable=True)
    files = [inline("run.sh", text, mode=0o755), inline("kept", b"k"), inline("changed", b"c\n")]

    exited = await submitter.run(ad, inputs=files)

    assert exited.result.exit is not None
    names = {file.name: file.data for file in exited.outputs if not file.name.startswith("_condor")}
    assert {"new": b"new\n", "changed": b"c\nmore\n", "link": b"new\n"} == names


async def test_listed_outputs_come_back_by_htcondors_rules(submitter: SubmitSide) -> None:
    """
    A listed file comes by its base name, a directory with its tree, `d/` as its contents; missing ones are named.
    """
    text = "mkdir -p a/b e; echo 1 > a/b/one; echo 2 > a/two; echo 3 > e/three; echo no > unlisted"

    exited = await submitter.run(script(text, TransferOutput="a, a/b/one, e/, absent"))

    assert exited.result.exit is not None
    names = {file.name: file.data for file in exited.outputs if not file.name.startswith("_condor")}
    assert {"a/b/one": b"1\n", "a/two": b"2\n", "one": b"1\n", "three": b"3\n"} == names
    assert not_made(["absent"]) == exited.result.ending


async def test_an_empty_list_of_outputs_means_none(submitter: SubmitSide) -> None:
    """Only the standard streams come back."""
    exited = await submitter.run(script("echo x > x", TransferOutput=""))

    assert exited.result.exit is not None
    assert {"_condor_stdout", "_condor_stderr"} == {file.name for file in exited.outputs}


async def test_a_large_output_is_fetched_and_removed_when_confirmed(pool: WorkerPool) -> None:
    """What does not fit into the report stays until somebody has it, behind the claim's secret."""
    async with pool.startd() as startd:
        submitter = pool.submitter
        activation = await submitter.start(script("head -c 700000 /dev/zero | tr '\\0' x > big"))
        report = await submitter.hear(activation, lambda report: isinstance(report.body, FinalReport))
        assert isinstance(report.body, FinalReport)
        assert report.body.result.exit is not None
        big = next(file for file in report.body.outputs if file.name == "big")
        assert (700_000, None) == (big.size, big.data)

        fetched = b""
        while len(fetched) < big.size:
            request = FetchOutput(
                key=activation.key,
                job=activation.job,
                attempt=1,
                name="big",
                offset=len(fetched),
                length=512 * 1024,
            )
            fetched += (await submitter.shadow.call(FETCH_OUTPUT, submitter.startd, request)).data
        assert b"x" * 700_000 == fetched

        wrong = FetchOutput(
            key=ClaimKey(activation.key.claim, "?"),
            job=activation.job,
            attempt=1,
            name="big",
            offset=0,
            length=1,
        )
        with pytest.raises(Exception, match="no output big"):
            await submitter.shadow.call(FETCH_OUTPUT, submitter.startd, wrong)

        assert 1 == len(list(pool.execute.glob("dir_*")))
        key = report.key
        await submitter.shadow.call(CONFIRM, submitter.startd, Confirm(recorded=[key]))
        await pool.until(lambda: not list(pool.execute.glob("dir_*")) and not list(pool.reports.iterdir()))
        await startd.drain()


async def test_large_outputs_are_fetched_by_the_names_under_which_they_are_sent(pool: WorkerPool) -> None:
    """Below a link that the job made as well, and under a name that is a directory's in its sandbox."""
    size = 70_000
    make = f"mkdir run build; head -c {size} /dev/zero | tee run/f > build/build; ln -s run latest"
    async with pool.startd() as startd:
        submitter = pool.submitter
        activation = await submitter.start(script(make, TransferOutput="latest, build/build"))
        report = await submitter.hear(activation, lambda report: isinstance(report.body, FinalReport))
        assert isinstance(report.body, FinalReport)
        assert None is report.body.result.ending
        for name in ("latest/f", "build"):
            request = FetchOutput(
                key=activation.key, job=activation.job, attempt=1, name=name, offset=0, length=size
            )
            assert bytes(size) == (await submitter.shadow.call(FETCH_OUTPUT, submitter.startd, request)).data
        await submitter.shadow.call(CONFIRM, submitter.startd, Confirm(recorded=[report.key]))
        await pool.until(lambda: not list(pool.execute.glob("dir_*")))
        await startd.drain()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs jobs that run as another account")
async def test_a_result_that_leads_to_a_secret_is_read_with_the_jobs_rights(pool: WorkerPool) -> None:
    """A link to a file that the job could not read yields nothing, whether small or large."""
    secret = pool.home / "secret"
    secret.write_bytes(b"s" * 100_000)
    secret.chmod(0o600)
    async with pool.startd() as startd:
        exited = await pool.submitter.run(
            script(
                f"ln -s {secret} stolen; rm _condor_stdout; ln -s {secret} _condor_stdout",
                TransferOutput="stolen",
            )
        )

        assert exited.result.exit is not None
        assert ["_condor_stderr"] == [file.name for file in exited.outputs]
        await startd.drain()


async def test_a_large_input_is_fetched_once_for_two_jobs(submitter: SubmitSide) -> None:
    """An input file comes from the shadow in pieces and is kept by its hash."""
    file = submitter.file("data", os.urandom(1_300_000))
    claim = await submitter.claim()

    first = await submitter.final(
        await submitter.start(script("sha256sum < data"), claim=claim, inputs=[file])
    )
    second = await submitter.final(
        await submitter.start(script("sha256sum < data"), claim=claim, inputs=[file])
    )

    assert [file.sha256.encode()] * 2 == [(output(each) or b"")[:64] for each in (first, second)]
    assert 3 == len(submitter.fetched)
    assert 1_300_000 == second.result.usage.received


async def test_an_input_that_cannot_be_read_holds_the_job(submitter: SubmitSide) -> None:
    """The reason names the file: hold code 13."""
    file = submitter.file("data", b"x" * 100_000)
    del submitter.files["data"]

    failed = await submitter.run(script("true"), inputs=[file])

    assert failed.result.exit is None

    assert failed.result.ending is not None
    assert (True, 13) == (failed.result.ending.holds, failed.result.ending.code)
    assert "data" in failed.result.ending.reason


async def test_an_input_that_changed_holds_the_job(submitter: SubmitSide) -> None:
    """Bytes that do not have the announced hash never reach a job."""
    file = submitter.file("data", b"x" * 100_000)
    submitter.files["data"] = b"y" * 100_000

    failed = await submitter.run(script("true"), inputs=[file])

    assert failed.result.exit is None

    assert failed.result.ending is not None
    assert (True, 13) == (failed.result.ending.holds, failed.result.ending.code)


@pytest.mark.parametrize(
    ("program", "errno", "words"),
    [
        (None, 2, "No such file"),
        (b"#!/no/such/interpreter\n", 2, "bad interpreter: '/no/such/interpreter'"),
        (b"neither", 8, "neither a program for this machine nor a script"),
    ],
)
async def test_what_cannot_be_executed_holds_the_job(
    submitter: SubmitSide, program: bytes | None, errno: int, words: str
) -> None:
    """Hold code 6 with the errno, and a sentence that says what is wrong with which file."""
    files = [] if program is None else [inline("run", program, mode=0o755)]

    failed = await submitter.run(job_ad(Cmd="run", TransferExecutable=True), inputs=files)

    assert failed.result.exit is None

    assert failed.result.ending is not None
    assert (True, 6, errno) == (
        failed.result.ending.holds,
        failed.result.ending.code,
        failed.result.ending.subcode,
    )
    assert words in failed.result.ending.reason
    assert "/run" in failed.result.ending.reason


async def test_a_missing_standard_input_holds_the_job(submitter: SubmitSide) -> None:
    """Hold code 8."""
    failed = await submitter.run(script("true", In="absent"))

    assert failed.result.exit is None

    assert failed.result.ending is not None
    assert (True, 8, 2) == (
        failed.result.ending.holds,
        failed.result.ending.code,
        failed.result.ending.subcode,
    )


async def test_malformed_arguments_hold_the_job(submitter: SubmitSide) -> None:
    """A quote that is not closed is the job's fault, not the machine's."""
    failed = await submitter.run(job_ad(Arguments="-c 'open"))

    assert failed.result.exit is None

    assert failed.result.ending is not None
    assert (True, 6) == (failed.result.ending.holds, failed.result.ending.code)
    assert "is never closed" in failed.result.ending.reason


async def test_a_soft_end_lets_the_job_clean_up(submitter: SubmitSide) -> None:
    """Deactivation sends the job's own signal first; the report carries the code that was given."""
    text = "trap 'echo bye > /dev/stderr; exit 0' USR1; echo ready; while :; do sleep 0.05; done"
    activation = await submitter.start(script(text, KillSig="SIGUSR1", Patient=True))
    await submitter.hear(activation, lambda report: isinstance(report.body, Started))

    await submitter.shadow.call(
        DEACTIVATE,
        submitter.startd,
        Deactivate(
            attempts=[
                Deactivation(
                    key=activation.key,
                    job=activation.job,
                    attempt=1,
                    ending=Ending(code=1023, reason="removed"),
                )
            ]
        ),
    )

    failed = await submitter.final(activation)
    assert failed.result.exit is None
    assert failed.result.ending is not None
    assert (False, 1023, "removed") == (
        failed.result.ending.holds,
        failed.result.ending.code,
        failed.result.ending.reason,
    )


async def test_a_job_that_ignores_the_soft_signal_is_killed(submitter: SubmitSide) -> None:
    """After the time that the job itself asked for comes SIGKILL: its machine would give it an hour."""
    text = "trap '' TERM; while :; do sleep 0.05; done"
    activation = await submitter.start(script(text, KillSigTimeout=0.3, Patient=True))
    await submitter.hear(activation, lambda report: isinstance(report.body, Started))

    order = Deactivation(
        key=activation.key, job=activation.job, attempt=1, ending=Ending(code=1004, reason="vacated")
    )
    await submitter.shadow.call(DEACTIVATE, submitter.startd, Deactivate(attempts=[order]))

    failed = await submitter.final(activation)
    assert failed.result.exit is None
    assert failed.result.ending is not None
    assert 1004 == failed.result.ending.code


async def test_no_process_outlives_its_job(pool: WorkerPool) -> None:
    """A double-forked orphan in a session of its own is gone when the report comes."""
    async with pool.startd() as startd:
        text = (
            f"(setsid sh -c 'exec sleep {pool.nap}' >/dev/null 2>&1 & echo $! ); "
            f"(setsid sleep {pool.nap} & ); sleep 0.2"
        )

        await pool.submitter.run(script(text))

        assert [] == pool.sleeping()
        await startd.drain()


async def test_a_job_over_its_memory_is_held(submitter: SubmitSide) -> None:
    """Hold code 34, subcode 102, by the kernel's limit or by measurement."""
    program = (
        "x = bytearray(400 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\nimport time; time.sleep(600)"
    )
    ad = job_ad(Cmd="/usr/bin/env", Arguments=f"python3 -c '{program}'")

    failed = await submitter.run(ad)

    assert failed.result.exit is None

    assert failed.result.ending is not None
    assert (True, 34, 102) == (
        failed.result.ending.holds,
        failed.result.ending.code,
        failed.result.ending.subcode,
    )
    assert "128 MiB" in failed.result.ending.reason


async def test_a_job_over_its_allowed_time_is_held(submitter: SubmitSide) -> None:
    """Hold code 47."""
    failed = await submitter.run(script("sleep 600", AllowedExecuteDuration=1))

    assert failed.result.exit is None

    assert failed.result.ending is not None
    assert (True, 47) == (failed.result.ending.holds, failed.result.ending.code)


async def test_cpu_time_of_the_whole_tree_is_measured(submitter: SubmitSide) -> None:
    """Children count, also those that are not the job's direct ones."""
    loop = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"

    exited = await submitter.run(script(f"sh -c '{loop}'; true"))

    assert exited.result.usage.user_cpu + exited.result.usage.system_cpu > 0.02


async def test_use_is_reported_while_the_job_runs(pool: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report of what was measured comes between the first and the last one, with numbers that grow."""
    async with pool.startd() as startd:
        submitter = pool.submitter
        activation = await submitter.start(script("sleep 600"))
        report = await submitter.hear(activation, lambda report: isinstance(report.body, Measured))
        assert isinstance(report.body, Measured)
        assert report.body.usage.memory_kib > 0
        await startd.drain()
        numbers = [r.sequence for r in submitter.reports if r.job == activation.job]
        assert sorted(set(numbers)) == list(dict.fromkeys(numbers))


async def test_a_final_report_is_repeated_until_it_is_confirmed(pool: WorkerPool) -> None:
    """And is forgotten then, here and on disk."""
    async with pool.startd() as startd:
        submitter = pool.submitter
        activation = await submitter.start(job_ad(Cmd="/bin/true"))
        await submitter.final(activation)

        def finals() -> list[Report]:
            return [r for r in submitter.reports if isinstance(r.body, FinalReport) and r.body.result.done]

        await pool.until(lambda: len(finals()) >= 3)
        assert 1 == len({(r.claim, r.attempt, r.sequence) for r in finals()})
        key = finals()[0].key
        await submitter.shadow.call(CONFIRM, submitter.startd, Confirm(recorded=[key]))
        assert [] == list(pool.reports.iterdir())
        await startd.drain()
