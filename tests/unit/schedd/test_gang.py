"""A job of several nodes in the queue."""

import pytest

from kettle_services.schedd.domain.jobs.commands import Assign, Command, End
from kettle_services.schedd.domain.jobs.decide import decide
from kettle_services.schedd.domain.jobs.gang import NodeBegin, NodeEnd
from kettle_services.schedd.domain.jobs.job import Job, evolve
from kettle_services.schedd.domain.submission.validation import Unacceptable, check
from kettle_wire.ads import Ad, Scalar
from kettle_wire.attempts import AttemptResult, Ending, ExitRecord
from kettle_wire.codes import VacateCode
from kettle_wire.events import JobNodeEnded, JobNodeStarted, NodeSlot

OTHERS = tuple(NodeSlot(claim=f"c{number}", slot=f"s{number}", startd="m") for number in (1, 2))
ASSIGN = Assign(claim="c0", slot="s0", startd="m", nodes=OTHERS)
ENDED = AttemptResult(exit=ExitRecord(code=0))


def after(job: Job, *commands: Command) -> Job:
    for command in commands:
        for event in decide(job, command):
            job = evolve(job, event)
    return job


def test_it_has_all_of_its_claims_or_none() -> None:
    """From its assignment to the end of its attempt, however that ends."""
    running = after(Job(), ASSIGN)
    assert ("c0", "c1", "c2") == running.attempt.claims
    lost = AttemptResult(ending=Ending(code=VacateCode.ReconnectFailed, reason="gone"))
    for result in (ENDED, lost):
        over = after(running, End(1, "c0", result))
        assert ((), None) == (over.attempt.claims, over.attempt.gang)


def test_each_node_begins_and_ends_once() -> None:
    """What is said twice, of a node that there is not, or of another attempt, changes nothing."""
    running = after(Job(), ASSIGN)
    begin, end = NodeBegin(1, "c0", 1, "c1", "s1", 2.0), NodeEnd(1, "c0", 1, ENDED)
    assert [JobNodeStarted(attempt=1, node=1, claim="c1", slot="s1", at=2.0)] == decide(running, begin)
    assert [JobNodeEnded(attempt=1, node=1, exit=ENDED.exit)] == decide(running, end)
    ended = after(running, begin, end)
    assert [False, True, False] == [
        ended.attempt.gang is not None and ended.attempt.gang.has_ended(c) for c in ended.attempt.claims
    ]
    for repeated in (begin, end):
        assert [] == decide(ended, repeated)
    assert [] == decide(running, NodeEnd(1, "c0", 3, ENDED))
    assert [] == decide(running, NodeEnd(2, "c0", 1, ENDED))
    assert [] == decide(after(Job(), Assign(claim="c0", slot="s0", startd="m")), end)


@pytest.mark.parametrize(("least", "most"), [(4, 3), (0, 3), (1001, 1001), ("2", "2"), (True, True)])
def test_a_number_of_nodes_that_cannot_be_is_refused(least: Scalar, most: Scalar) -> None:
    """In the ad and in a row alike: otherwise the job would run on one slot."""
    nodes: Ad = {"MinHosts": least, "MaxHosts": most}
    parallel: Ad = {"Cmd": "/bin/true", "JobUniverse": 11}
    with pytest.raises(Unacceptable, match="from 1 to 1000"):
        check(parallel | nodes, [], [[]], limit=10)
    with pytest.raises(Unacceptable, match="from 1 to 1000"):
        check(parallel | {"MinHosts": 2}, ["MaxHosts"], [[2], [1]], limit=10)
    check(parallel | {"MinHosts": 2}, ["MaxHosts"], [[2], [3]], limit=10)
