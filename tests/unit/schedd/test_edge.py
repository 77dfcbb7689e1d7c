"""What comes from outside is bounded before it does anything."""

import math
import tracemalloc

import msgspec
import pytest

from kettle.classad import ClassAd, matches, parse
from kettle_services.schedd.commands.attempt_reports import command_of
from kettle_services.schedd.domain.evaluation import at, holds
from kettle_services.schedd.domain.jobs.commands import End
from kettle_services.schedd.domain.submission.validation import JOB_BYTES, Unacceptable, check, check_values
from kettle_services.schedd.shadows.dispatch import MESSAGE_BYTES, fitting
from kettle_wire.ads import Ad, Expr
from kettle_wire.attempts import AttemptResult, Ending, ExitRecord
from kettle_wire.commands.attempt_reports import AttemptReport, Ended
from kettle_wire.commands.schedd import ACT, EDIT, EDIT_JOBS, RUN_NOW, SUBMIT
from kettle_wire.commands.shadow import Assignment
from kettle_wire.commands.startd import ClaimKey
from kettle_wire.events import Usage
from kettle_wire.jobs import JobId

DEEP = "+".join(["1"] * 450)


@pytest.mark.parametrize("given", ["", "a\0b", "é", "x" * 65, "a\nb"])
def test_an_id_that_is_none_is_refused(given: str) -> None:
    """Before anything is recorded under it."""
    for endpoint in (SUBMIT, ACT, EDIT, EDIT_JOBS, RUN_NOW):
        with pytest.raises(msgspec.ValidationError, match=r"\$.id"):
            endpoint.decode_request(msgspec.msgpack.encode({"id": given}))


def test_what_cannot_be_evaluated_is_not_true() -> None:
    """An expression that is too deep refuses, and hurts nobody."""
    ad = ClassAd.from_wire({"Requirements": Expr(DEEP)})
    assert not holds(parse(DEEP), ad, at(0))
    assert not matches(ad, ad, at(0))


def test_constraints_know_what_time_it_is() -> None:
    """The oldest jobs are found by their age."""
    assert holds(parse("time() - QDate > 60"), ClassAd.from_wire({"QDate": 100}), at(161.5))


def test_messages_are_cut_by_size() -> None:
    """However large job ads are, a message has at least one and stays below what the bus takes."""

    def assignment(number: int, size: int) -> Assignment:
        return Assignment(
            job=JobId(1, number),
            attempt=1,
            key=ClaimKey("c", "s"),
            startd="m",
            slot="s",
            ad={"Env": "x" * size},
        )

    large = [assignment(n, 200_000) for n in range(100)]
    assert 0 < len(fitting(large)) <= MESSAGE_BYTES // 200_000
    assert 1 == len(fitting([assignment(0, 2 * MESSAGE_BYTES), *large]))
    assert [] == fitting([])


def test_an_ad_that_is_too_large_is_refused() -> None:
    """Because it travels with others in one message."""
    ad: Ad = {"Cmd": "/bin/true", "Environment": "x" * JOB_BYTES}
    with pytest.raises(Unacceptable, match="bytes"):
        check(ad, [], [[]], limit=10)


SOUND_TASKS: Ad = {"Cmd": "x", "KettleTasks": '{"tasks":[{"cmd":["a"]}]}'}


@pytest.mark.parametrize(
    ("ad", "columns"), [({"Cmd": "x"}, ["kettleTasks"]), ({"Cmd": "x", "KettleTasks": "[]"}, ["A"])]
)
def test_tasks_that_cannot_be_run_are_refused(ad: Ad, columns: list[str]) -> None:
    """Wherever they stand, those of all jobs or those of one; sound ones are let in."""
    with pytest.raises(Unacceptable, match="KettleTasks"):
        check(ad, columns, [['{"tasks":[]}']], limit=10)
    with pytest.raises(Unacceptable, match="KettleTasks"):
        check_values({"kettletasks": 1})
    check(SOUND_TASKS, ["A"], [[1]], limit=10)


@pytest.mark.parametrize(
    "more", [{"successCheckpointExitCode": 85}, {"ShouldTransferFiles": "no"}, {"jobuniverse": 12}]
)
def test_tasks_do_not_go_with_everything(more: Ad) -> None:
    """They have a sandbox on a machine, and make no checkpoints."""
    with pytest.raises(Unacceptable, match="task"):
        check({**SOUND_TASKS, **more}, ["A"], [[1]], limit=10)


@pytest.mark.parametrize("text", [f"x:0.{310 * '0'}1", "a;b", f"a{16_000 * ' '}b"])
def test_limits_that_nobody_can_count_are_refused(text: str) -> None:
    """
    In whatever place of a submission and in whatever letters they stand; an expression is the negotiator's to look at.
    """
    with pytest.raises(Unacceptable, match="ConcurrencyLimits: "):
        check({"Cmd": "/bin/true", "concurrencylimits": text}, [], [[]], limit=10)
    with pytest.raises(Unacceptable, match="ConcurrencyLimits: "):
        check({"Cmd": "/bin/true"}, ["ConcurrencyLimits"], [["a:2"], [text]], limit=10)
    good: Ad = {"Cmd": "/bin/true", "ConcurrencyLimits": "sw.big:2.5, a"}
    check(good, ["Note"], [[text]], limit=10)
    check({**good, "ConcurrencyLimits": Expr("TARGET.Site")}, [], [[]], limit=10)


@pytest.mark.parametrize(
    ("ad", "columns"),
    [
        ({"Memory": 1, "memory": 2}, []),
        ({"Memory": 1}, ["memory"]),
        ({}, ["Memory", "MEMORY"]),
        ({"MEMORY": 2}, ["Disk", "Memory"]),
    ],
)
def test_one_name_in_two_spellings_is_refused(ad: Ad, columns: list[str]) -> None:
    """Who looks for one of them would overlook the other, which counts."""
    with pytest.raises(Unacceptable, match="the same name"):
        check({"Cmd": "/bin/true", **ad}, columns, [[1] * len(columns)], limit=1)


def test_the_universe_is_looked_at_however_it_is_spelled() -> None:
    """As jobs, machines and policies see it."""
    with pytest.raises(Unacceptable, match="universes"):
        check({"Cmd": "/bin/true", "jobuniverse": 10}, [], [[]], limit=1)
    with pytest.raises(Unacceptable, match="universes"):
        check({"Cmd": "/bin/true"}, ["JOBUNIVERSE"], [[10]], limit=1)


def test_what_a_worker_measured_must_be_numbers() -> None:
    """Infinity and invalid values count as nothing, because recorded values have to be folded always."""
    usage = Usage(wall=math.inf, user_cpu=math.nan, memory_kib=-1, sent=5)
    news = Ended(result=AttemptResult(exit=ExitRecord(code=0, at=math.inf), usage=usage))
    command = command_of(AttemptReport(job=JobId(1, 0), attempt=1, claim="c", news=news))
    assert End(1, "c", AttemptResult(exit=ExitRecord(code=0), usage=Usage(sent=5))) == command


def test_a_job_that_no_machine_can_activate_is_held() -> None:
    """Another attempt would be refused in the same way."""
    news = Ended(result=AttemptResult(ending=Ending(code=1026, reason="the name leads out of the sandbox")))
    command = command_of(AttemptReport(job=JobId(1, 0), attempt=1, claim="c", news=news))
    assert isinstance(command, End)
    assert command.result.ending is not None
    assert (True, 6) == (command.result.ending.holds, command.result.ending.code)


@pytest.mark.parametrize("value", ["a\0b", math.inf, math.nan])
def test_a_value_that_nothing_can_carry_is_refused(value: str | float) -> None:
    """Before it is recorded: later it would be in everybody's way."""
    with pytest.raises(Unacceptable, match=r"NUL|finite"):
        check({"Cmd": "/bin/true"}, ["Note"], [[value]], limit=10)


def test_names_of_attributes_are_not_kept_without_end() -> None:
    """
    What is remembered, so that submissions like one before are looked at faster, is small, however long the names of somebody's are.
    """

    def submit(number: int) -> None:
        names = [f"A{number}_{place}_{'x' * 1000}" for place in range(500)]
        check({"Cmd": "/bin/true"}, names, [[1] * len(names)], limit=1)

    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(20):
            submit(number)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 1_000_000
