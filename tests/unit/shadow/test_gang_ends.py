"""How a job of several nodes ends, by what its nodes say."""

from itertools import permutations

from kettle_services.shadow.domain.gang import decided, together, with_others
from kettle_wire.attempts import AttemptResult, Ending, ExitRecord, Usage
from kettle_wire.codes import VacateCode

EXITED = AttemptResult(exit=ExitRecord(code=3))
FAILED = AttemptResult(exit=ExitRecord(signal=11))
EVICTED = AttemptResult(ending=Ending(code=VacateCode.ScheddVacate, reason="drained"))
ALONG = AttemptResult(ending=with_others("the job has ended on another node"))


def test_node_0_ends_all() -> None:
    """The end of others decides nothing, however they end; that of node 0 decides at once."""
    assert decided({2: FAILED}, 3, waits_for_all=False) is None
    assert EXITED == decided({2: FAILED, 0: EXITED}, 3, waits_for_all=False)


def test_a_job_may_wait_for_all_of_its_nodes() -> None:
    """Then it ends with the last one, and as node 0 has."""
    assert decided({0: EXITED, 1: FAILED}, 3, waits_for_all=True) is None
    assert EXITED == decided({0: EXITED, 1: FAILED, 2: FAILED}, 3, waits_for_all=True)


def test_a_node_that_was_ended_ends_all() -> None:
    """With either policy, and whichever node it is."""
    for waits in (False, True):
        assert EVICTED == decided({1: EXITED, 2: EVICTED}, 3, waits_for_all=waits)


def test_who_hears_it_in_another_order_decides_the_same() -> None:
    """
    The next shadow hears again what this one did not have recorded: what was ended along decides nothing.
    """
    for cause, number in ((EXITED, 0), (EVICTED, 2)):
        others = [each for each in range(3) if each != number]
        said = [(number, cause), *((other, ALONG) for other in others)]
        for order in permutations(said):
            assert cause == decided(dict(order), 3, waits_for_all=False)


def test_what_nodes_used_is_added_but_for_the_time() -> None:
    """They ran side by side, each with memory of its own."""
    one, other = (
        Usage(wall=3, user_cpu=2, memory_kib=9, sent=1),
        Usage(wall=5, user_cpu=1, memory_kib=4, sent=2),
    )
    assert Usage(wall=5, user_cpu=3, memory_kib=9, sent=3) == together([one, other])
