"""What a job may say of itself."""

import pytest

from kettle.jobs import chirp_updates
from kettle.jobs.ad import KEPT, apply
from kettle_wire.ads import Ad
from kettle_wire.events import JobTold


@pytest.mark.parametrize(
    "name",
    ["Owner", "ClusterId", "JobStatus", "jobstatus", "User", "NumJobStarts", "RequestMemory", "PeriodicHold", "a b", "true",
     "RemoteHost", "Requirements", "", "A" * 129, "GlobalJobId", "HoldReason"],
)  # fmt: skip
def test_a_job_does_not_say_who_it_is_nor_what_happens_to_it(name: str) -> None:
    """Nor what was asked once, nor what is no name; the sentence says why."""
    assert chirp_updates.refusal(name)
    assert {} == chirp_updates.sayable({name: 1})


def test_what_the_queue_keeps_is_kept() -> None:
    """Everything that a submitter cannot state, no job can either."""
    assert all(chirp_updates.refusal(name) for name in KEPT)


def test_a_job_says_a_bounded_lot() -> None:
    """So many attributes at once, of so many bytes; so many notes, each on one line."""
    many: Ad = {f"A{number}": number for number in range(chirp_updates.MOST_ATTRIBUTES + 1)}

    assert chirp_updates.MOST_ATTRIBUTES == len(chirp_updates.sayable(many))
    assert {"B": 1} == chirp_updates.sayable({"A": "x" * 5000, "B": 1})
    assert ["one two"] == chirp_updates.lines(["one\ntwo"])
    assert chirp_updates.MOST_NOTES == len(chirp_updates.lines(["x"] * 100))


def test_names_are_the_same_in_any_case() -> None:
    """An attribute that the ad has keeps its spelling."""
    assert {"Stage": 2, "new": 3} == chirp_updates.spelled({"STAGE": 2, "new": 3}, {"Stage": 1})


def test_what_was_said_is_in_the_ad() -> None:
    """With the number of times that it was said."""
    ad: Ad = {"Stage": 1}
    apply(ad, JobTold(attempt=1, id="a", attributes={"Stage": 2}), 0)
    apply(ad, JobTold(attempt=1, id="b", notes=["x"]), 0)

    assert {"Stage": 2, "NumChirpUpdates": 1} == ad


def test_an_entrypoint_says_of_jobs_at_batch_systems_what_no_job_says() -> None:
    """Their names and states there, and nothing else that a job does not set."""
    said: Ad = {"GridJobId": "batch slurm x/1", "GridJobStatus": "R", "GridResource": "batch sge", "Stage": 2}
    assert {"Stage": 2} == chirp_updates.sayable(said)
    assert {"GridJobId", "GridJobStatus", "Stage"} == set(chirp_updates.sayable(said, there=True))
