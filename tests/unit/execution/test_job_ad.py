"""What a starter reads in a job's ad, and the ads as jobs read them."""

import signal

from kettle.execution.attempts.job_spec import AttemptId
from kettle.execution.job_environment.job_ad import JobAd, long_form
from kettle_wire.ads import Ad, Expr
from kettle_wire.jobs import JobId


def test_names_have_no_case_and_expressions_do_not_count() -> None:
    """A starter has no evaluator: what is not a literal counts as not given."""
    job = JobAd({"KILLSIG": "sigusr1", "Args": Expr("1 + 1"), "TransferExecutable": False})

    assert (signal.SIGUSR1, None, False) == (job.kill_signal(0), job.text("args"), job.transfers_executable)


def test_the_signal_depends_on_the_reason() -> None:
    """Removal and hold have signals of their own, SIGTERM is the last resort."""
    job = JobAd({"KillSig": 10, "RemoveKillSig": "INT", "HoldKillSig": "HUP"})

    assert [signal.SIGINT, 10, 10] == [job.kill_signal(code) for code in (1023, 1000, 1014)]
    assert [signal.SIGHUP] * 3 == [job.kill_signal(code) for code in (1022, 3, 34)]
    assert 10 == JobAd({"KillSig": 10}).kill_signal(1022)
    assert signal.SIGTERM == JobAd({"KillSig": "nonsense"}).kill_signal(0)


def test_a_job_may_ask_for_less_time_only() -> None:
    """The machine's limit stands."""
    ads: list[Ad] = [{"KillSigTimeout": 3}, {"JobMaxVacateTime": 99}, {}]

    assert [3, 10, 10] == [JobAd(ad).kill_timeout(10) for ad in ads]


def test_the_long_form_is_read_back_by_the_library() -> None:
    """Values of every kind, sorted by name."""
    from kettle.classad import read_long

    ad: Ad = {"b": 'say "x"', "A": True, "c": 1.0, "d": -2, "E": Expr("A && d > 1"), "f": 1e100}

    text = long_form(ad)

    assert ["A", "b", "c", "d", "E", "f"] == [line.partition(" = ")[0] for line in text.splitlines()]
    assert ad == read_long(text).to_wire()


def test_attempts_of_one_claim_have_names_of_their_own() -> None:
    """Also where the attempt's number is the same; any claim id makes a file name."""
    names = {AttemptId("<1.2.3.4:5>#1/2", JobId(1, proc), 1).sandbox for proc in (0, 1)}
    long = AttemptId("x" * 500, JobId(1, 0), 1).sandbox

    assert 2 == len(names)
    assert not any("/" in name for name in names)
    assert len(long) < 100
