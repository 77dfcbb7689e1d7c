"""What people are told of the steps of a job."""

import pytest

from kettle.tasks.sentences import step_sentence
from kettle_wire.tasks import Step


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (Step(kind="task", outcome="begun", task=0, began=10.0), "task 0 begins"),
        (
            Step(kind="task", outcome="failed", task=2, retry=1, code=3, began=10.0, ended=12.5),
            "task 2, 1 retry, exited with code 3 after 2.50 s",
        ),
        (
            Step(kind="task", outcome="ended", task=0, signal=15, reason="its time is over"),
            "task 0 was ended by signal 15: its time is over",
        ),
        (
            Step(kind="task", outcome="failed", task=0, reason="there is no x"),
            "task 0 failed: there is no x",
        ),
        (Step(kind="sidecar", outcome="done", task=1), "sidecar 1 ended"),
        (
            Step(kind="pull", outcome="cached", name="a.sif", began=1.0, ended=1.5, bytes=2048),
            "image a.sif was there after 500 ms, 2 KiB",
        ),
        (
            Step(kind="fetch", outcome="failed", name="http://h/x", reason="404"),
            "http://h/x cannot be fetched: 404",
        ),
        (Step(kind="send", outcome="done", name="made", bytes=100), "made sent, 100 B"),
    ],
)
def test_each_step_is_a_sentence(step: Step, said: str) -> None:
    """With how it ended, how long it took, how much that was, and why."""
    assert said == step_sentence(step)
