"""What a schedd's claims use of concurrency limits, by its record."""

from kettle_services.schedd.domain.negotiation.concurrency_limits import LimitsInUse, added
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.domain.queue.working_set import restore
from kettle_wire.events import ClaimEnded, ClaimGranted, ClusterSubmitted
from kettle_wire.jobs import JobId


def granted(claim: str, submitter: str = "ada", **limits: float) -> ClaimGranted:
    return ClaimGranted(
        claim=claim,
        startd="m",
        slot="s",
        slot_ad={},
        submitter=submitter,
        autocluster=1,
        lease=9.0,
        limits=limits,
    )


def test_the_record_says_what_is_used_also_after_a_restart() -> None:
    """
    Each recorded claim counts for what its match said, until it ends; a queue made from the working set says the same.
    """
    queue, rows = Queue("ap"), dict[str, bytes]()
    for event in (
        granted("1", matlab=1),
        granted("2", matlab=1, a=0.1),
        granted("3", "bob", matlab=2),
        granted("4"),
    ):
        for change in queue.apply(f"claim/{event.claim}", event, 1):
            assert change.state is not None
            rows[change.stream] = change.state
    assert {"matlab": 2.0, "a": 0.1} == queue.claim_use.limits.of("ada")
    again = Queue("ap")
    restore(again, rows.items())
    assert [{"matlab": 2.0, "a": 0.1}, {"matlab": 2.0}, {}] == [
        again.claim_use.limits.of(n) for n in ("ada", "bob", "eve")
    ]
    for claim in ("2", "1", "1"):
        again.apply(f"claim/{claim}", ClaimEnded(claim=claim, reason="over"), 2)
    assert {} == again.claim_use.limits.of("ada")
    assert {"a": 1.0, "b": 3.0} == added({"a": 1.0, "b": 1.0}, {"b": 2.0})


def test_jobs_with_other_limits_are_in_other_autoclusters() -> None:
    """
    A claim goes to the next job of its autocluster without the negotiator, so all of these use the same.
    """
    queue = Queue("ap")
    event = ClusterSubmitted(
        cluster=1,
        owner="ada",
        ad={"Cmd": "x"},
        columns=["ConcurrencyLimits"],
        rows=[["a"], ["a:2"], ["a"]],
    )
    queue.apply("cluster/1", event, 0)
    numbers = [queue.autocluster(JobId(1, proc)) for proc in range(3)]
    assert numbers[0] == numbers[2] != numbers[1]
    assert queue.clusters[1].limited
    queue.apply(
        "cluster/2", ClusterSubmitted(cluster=2, owner="ada", ad={"Cmd": "x"}, columns=[], rows=[[]]), 0
    )
    assert not queue.clusters[2].limited


def test_the_names_of_limits_are_counted() -> None:
    """A name is there as long as a claim uses it, however much of it and with whatever others."""
    used = LimitsInUse()
    for uses, claims in (({"a": 1.0}, 2), ({"a": 2.0, "b": 1.0}, 1), ({"c": 1.0}, 1)):
        used.count("ada", uses, claims)
    assert {"a", "b", "c"} == set(used.names("ada"))
    used.count("ada", {"a": 2.0, "b": 1.0}, -1)
    used.count("ada", {"c": 1.0}, -1)
    used.count("ada", {"a": 1.0}, -1)
    assert {"a"} == set(used.names("ada"))
    used.count("ada", {"a": 1.0}, -1)
    assert [] == list(used.names("ada")) == list(used.names("bob"))
