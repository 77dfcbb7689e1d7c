"""What follows for claims and jobs of batch systems, without doing it."""

from collections.abc import Sequence

import pytest

from kettle_services.ce.domain.attempts import claims, progress
from kettle_services.ce.domain.attempts.activation import activate, intent_of
from kettle_services.ce.domain.attempts.attempt import BatchClaim, Run, Stage, evolve
from kettle_services.ce.domain.attempts.endings import ending_of, grid_status, result_of
from kettle_services.ce.domain.batch import sge
from kettle_services.ce.domain.batch.script import left
from kettle_wire.attempts import Ending
from kettle_wire.batch import BatchEnd, EndCause
from kettle_wire.codes import HoldCode
from kettle_wire.commands.startd import Activation, Alive, ClaimKey, RequestClaims
from kettle_wire.events.batch import BatchEnded, BatchEvent, BatchSubmitting
from kettle_wire.jobs import JobId

_KEY = ClaimKey("schedd#1", "secret")
_LEASE = 86_400.0
_STOP = Ending(code=HoldCode.UserRequest, reason="somebody said so")


class Book:
    """Claims as they are folded."""

    def __init__(self) -> None:
        self.claims: dict[str, BatchClaim] = {}

    def take(self, changes: Sequence[tuple[str, BatchEvent]]) -> None:
        """Fold events."""
        for name, event in changes:
            after = evolve(self.claims.get(name), event)
            if after is None:
                del self.claims[name]
            else:
                self.claims[name] = after

    def events(self, events: Sequence[BatchEvent]) -> None:
        """Fold events of the one claim."""
        self.take([(_KEY.claim, event) for event in events])

    @property
    def run(self) -> Run:
        """The job of the one claim."""
        run = self.claims[_KEY.claim].run
        assert run is not None
        return run


def activation() -> Activation:
    return Activation(key=_KEY, job=JobId(7, 0), attempt=1, ad={"RequestCpus": 2}, inputs=[], shadow="shadow")


@pytest.fixture
def book() -> Book:
    """One with a claim that was granted at 1000."""
    made = Book()
    command = RequestClaims(
        schedd="schedd",
        slot="cluster",
        capability="",
        submitter="somebody",
        job={},
        claims=[_KEY],
        lease=_LEASE,
    )
    decided, changes = claims.request_claims({}, command, "cluster", {"cluster": ""}, 1000.0)
    assert [_KEY.claim] == [each.claim for each in decided.granted]
    made.take(changes)
    again, nothing = claims.request_claims(made.claims, command, "cluster", {"cluster": "it is away"}, 1001.0)
    assert ([_KEY.claim], []) == ([each.claim for each in again.granted], nothing)
    return made


@pytest.fixture
def submitting(book: Book) -> Book:
    """One whose job the batch system is asked to take."""
    book.take(activate(book.claims, activation(), 1010.0, pool="here", owner="")[1])
    book.events(progress.submitting(book.run, 1020.0))
    return book


def test_a_claim_that_nobody_takes_up_is_over_soon(book: Book) -> None:
    """A claim waits a minute for its first sign; with its job it has its lease."""
    assert [] == claims.expire(book.claims, 1059.0)
    assert [_KEY.claim] == [name for name, _ in claims.expire(book.claims, 1060.0)]
    book.take(activate(book.claims, activation(), 1010.0, pool="here", owner="")[1])
    assert [] == claims.expire(book.claims, 1009.0 + _LEASE)
    assert [] != claims.expire(book.claims, 1010.0 + _LEASE)


def test_a_lease_is_recorded_seldom(book: Book) -> None:
    """The first renewal is recorded, and then those that would lose much; another key renews nothing."""
    command = Alive(schedd="schedd", claims=[_KEY], deadline=0.0, at=1005.0)
    reply, changes = claims.alive(book.claims, command, 1005.0)
    assert ([], []) == (reply.unknown, reply.extra)
    book.take(changes)
    assert 1005.0 + _LEASE == book.claims[_KEY.claim].until
    _, changes = claims.alive(
        book.claims, Alive(schedd="schedd", claims=[_KEY], deadline=0.0, at=1300.0), 1300.0
    )
    assert [] == changes
    stranger = ClaimKey(_KEY.claim, "guessed")
    reply, _ = claims.alive(book.claims, Alive(schedd="schedd", claims=[stranger], deadline=None), 1300.0)
    assert [_KEY.claim] == reply.unknown


def test_an_intent_is_nobody_elses() -> None:
    """It is the same whenever it is made, and another one for another pool, claim or attempt."""
    same = {intent_of("here", _KEY.claim, activation()) for _ in range(2)}
    others = {intent_of("there", _KEY.claim, activation()), intent_of("here", "schedd#2", activation())}
    assert 3 == len(same | others)
    assert all(15 == len(each) for each in same | others)


def test_a_doubt_ends_when_nothing_can_come_any_more(submitting: Book) -> None:
    """A job in doubt is asked for again only when it cannot be there any more."""
    submitting.events(progress.in_doubt(submitting.run, "no answer", 1030.0))
    assert [] == progress.submitting(submitting.run, 1031.0)
    assert [] == progress.not_found(submitting.run, 1089.0, settling=60.0)
    (again,) = progress.not_found(submitting.run, 1090.0, settling=60.0)
    assert BatchSubmitting(number=2, at=1090.0) == again


def test_a_job_that_is_to_end_is_not_asked_for_again(submitting: Book) -> None:
    """One in doubt that is to end is looked for, and if it never came it is over."""
    submitting.events(progress.in_doubt(submitting.run, "no answer", 1030.0))
    submitting.take(claims.stop(submitting.claims[_KEY.claim], _STOP, 1040.0))
    assert Stage.IN_DOUBT is submitting.run.stage
    submitting.events(progress.not_found(submitting.run, 1090.0, settling=60.0))
    assert (Stage.ENDED, _STOP) == (submitting.run.stage, submitting.run.ending)


def test_what_was_found_is_removed_before_it_is_over(submitting: Book) -> None:
    """One in doubt that is to end and is there has to be removed there first."""
    submitting.events(progress.in_doubt(submitting.run, "no answer", 1030.0))
    submitting.take(claims.stop(submitting.claims[_KEY.claim], _STOP, 1040.0))
    submitting.events(progress.taken(submitting.run, "12", 1050.0))
    assert (Stage.SUBMITTED, _STOP) == (submitting.run.stage, submitting.run.stop)
    submitting.events(progress.ended(submitting.run, BatchEnd(cause=EndCause.REMOVED), 1060.0))
    assert _STOP == submitting.run.ending
    assert None is result_of(submitting.run, submitting.run.ending, sent=0).exit


def test_one_missing_answer_says_nothing() -> None:
    """A job is looked into when it is missing twice, and given up when nothing ever says how it ended."""
    once, twice = progress.Absence(polls=1, since=0.0), progress.Absence(polls=2, since=0.0)
    assert not progress.is_looked_into(once)
    assert progress.is_looked_into(twice)
    assert None is progress.judged(twice, None, None, 599.0, patience=600.0)
    lost = progress.judged(twice, None, None, 600.0, patience=600.0)
    assert lost is not None
    assert (EndCause.UNKNOWN, None) == (lost.cause, lost.exit_code)


@pytest.mark.parametrize("failed", ["15  : in epilog", "19  : before writing exit_status"])
def test_what_fails_after_a_job_does_not_run_it_again(failed: str) -> None:
    """A job of Grid Engine that has left word of its end was started, whatever its books say that failed."""
    twice = progress.Absence(polls=2, since=0.0)
    block = f"jobname      k\njobnumber    7\nfailed       {failed}\nexit_status  0\n"
    _, accounted = sge.accounted(block)["7"]
    end = progress.judged(twice, accounted, left("code 0 10 12\n"), 1.0, patience=600.0)
    assert end is not None
    assert (EndCause.EXITED, 0, f"failed {failed}") == (end.cause, end.exit_code, end.words)


def test_a_job_that_was_to_be_removed_is_missed_sooner(submitting: Book) -> None:
    """That it is in no answer is what was wanted; without books nobody else would ever say so."""
    submitting.events(progress.taken(submitting.run, "12", 1030.0))
    assert 600.0 == progress.patience_with(submitting.run, 600.0, settling=65.0)
    submitting.take(claims.stop(submitting.claims[_KEY.claim], _STOP, 1040.0))
    assert 65.0 == progress.patience_with(submitting.run, 600.0, settling=65.0)
    assert 30.0 == progress.patience_with(submitting.run, 30.0, settling=65.0)


def test_a_second_job_that_ended_is_no_end(submitting: Book) -> None:
    """
    The one that has begun is followed, at the same cluster; one that has not said its number has a while for that.  Without another one
    it is an end.
    """
    submitting.events(progress.taken(submitting.run, "12;big", 1030.0))
    end = BatchEnd(cause=EndCause.EXITED, exit_code=74, ended=1040.0)
    assert [] == progress.ended_as_second(submitting.run, end, "", 1050.0, settling=60.0)
    for by, now in (("", 1100.0), (None, 1050.0), ("12", 1050.0)):
        (over,) = progress.ended_as_second(submitting.run, end, by, now, settling=60.0)
        assert BatchEnded(at=1040.0, end=end) == over
    submitting.events(progress.ended_as_second(submitting.run, end, "11", 1050.0, settling=60.0))
    assert (Stage.SUBMITTED, "11;big") == (submitting.run.stage, submitting.run.id)


@pytest.mark.parametrize(
    ("cause", "status"),
    [(EndCause.EXITED, "COMPLETED"), (EndCause.REMOVED, "REMOVED"), (EndCause.UNKNOWN, "UNKNOWN")],
)
def test_an_end_that_nobody_knows_is_no_removal(submitting: Book, cause: EndCause, status: str) -> None:
    """GridJobStatus says only what the batch system has said."""
    submitting.events(progress.taken(submitting.run, "12", 1030.0))
    assert "QUEUED" == grid_status(submitting.run)
    submitting.events(progress.ended(submitting.run, BatchEnd(cause=cause), 1040.0))
    assert status == grid_status(submitting.run)


def test_an_exit_code_that_nobody_knows_is_not_zero(submitting: Book) -> None:
    """Such a job is held, and has no exit."""
    submitting.events(progress.taken(submitting.run, "12", 1030.0))
    for cause in (EndCause.UNKNOWN, EndCause.EXITED):
        ending = ending_of(submitting.run, BatchEnd(cause=cause))
        assert ending is not None
        assert ending.holds
        assert "nobody knows how it ended" in ending.reason
