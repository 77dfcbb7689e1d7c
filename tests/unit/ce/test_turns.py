"""
Routes that share jobs go on where they were: after each decision, a restart, and when old decisions are forgotten.
"""

from collections import Counter

from kettle.routes import RouteTable, read_routes
from kettle_services.ce.domain.decisions import WaitingJob, counters_of, decide
from kettle_services.ce.domain.state import DECISION, CeState
from kettle_services.ce.domain.turns import Turns
from kettle_wire.commands.routing import RouteCount
from kettle_wire.events import RouteForgotten
from kettle_wire.jobs import JobId

NOW = 1_700_000_000.0


def table(selection: str, *, text: str = "") -> RouteTable:
    """A big route of weight 3 and a small one of weight 1, with room for all jobs."""
    bodies = "".join(
        f"JOB_ROUTER_ROUTE_{name} @=end\n  UNIVERSE VANILLA\n  Weight = {weight}\n"
        f"  MaxJobs = 10000\n  MaxIdleJobs = 10000\n  Rank = TARGET.RunningJobs + TARGET.HeldJobs\n@end\n"
        for name, weight in (("big", 3), ("small", 1))
    )
    return read_routes(
        f"{text}JOB_ROUTER_ROUTE_NAMES = big small\nJOB_ROUTER_SELECTION = {selection}\n{bodies}", "routes"
    )


class Entrypoint:
    """Decides, and records what it has decided."""

    def __init__(self, routes: RouteTable) -> None:
        self.routes = routes
        self.state = CeState()
        self.clusters = 0

    def decide(self, number: int, *, clusters: int = 1) -> Counter[str]:
        """Decide once about so many jobs, of so many clusters in turn; how many each route gets."""
        jobs = [
            WaitingJob(JobId(self.clusters + 1 + each % clusters, each), 0, {"Owner": "ada"}, "", NOW)
            for each in range(number)
        ]
        self.clusters += clusters
        counters = counters_of(self.routes, [], {}, self.state.turns)
        said, _ = decide(jobs, self.routes, counters, NOW, hold_after=0.0)
        for each in said:
            self.state.apply(f"{DECISION}{each.jobs[0].job.cluster}", each.event(), NOW)
        return Counter({each.decision.route: len(each.jobs) for each in said})

    def one_after_the_other(self, number: int) -> Counter[str]:
        """Each job comes when the one before has its route."""
        return sum((self.decide(1) for _ in range(number)), Counter[str]())

    def start_again(self) -> None:
        """Another process has what is kept."""
        restored = CeState()
        for stream, row in self.state.rows():
            restored.restore(stream, row)
        self.state = restored

    def forget(self) -> None:
        """No job is in the queue any more."""
        turns = self.state.turns
        for name, each in list(self.state.decisions.states.items()):
            if not turns.rest_on(each):
                self.state.apply(f"{DECISION}{name}", RouteForgotten(), NOW)


def test_routes_get_their_parts_of_jobs_that_come_one_after_the_other() -> None:
    """Each turn of the router goes on from what was given before it."""
    assert {"big": 30, "small": 10} == Entrypoint(table("weight")).one_after_the_other(40)


def test_parts_and_turns_survive_a_restart_and_what_is_forgotten() -> None:
    """Only the newest decisions are kept, at most one for each route and one for the turn."""
    for selection, parts in (
        ("weight", {"big": 30, "small": 10}),
        ("round_robin", {"big": 20, "small": 20}),
    ):
        entrypoint, found = Entrypoint(table(selection)), Counter[str]()
        for _ in range(40):
            found += entrypoint.one_after_the_other(1)
            entrypoint.forget()
            entrypoint.start_again()
        assert (parts, 2) == (found, len(entrypoint.state.decisions.states))


def test_jobs_of_several_clusters_are_counted_in_whichever_order_it_is_recorded() -> None:
    """What is the same of a cluster is recorded together, so that places in the turns are out of order."""
    entrypoint = Entrypoint(table("weight"))
    entrypoint.decide(14, clusters=3)
    entrypoint.start_again()
    assert ({"big": 11, "small": 3}, 14) == (entrypoint.state.turns.taken, entrypoint.state.turns.turn)


def test_other_routes_begin_with_nothing() -> None:
    """A route that is new does not have to make up for all that the others were given; the turn goes on."""
    entrypoint = Entrypoint(table("weight"))
    entrypoint.one_after_the_other(40)
    entrypoint.routes = other = table("weight", text="# others\n")
    assert 0 == counters_of(other, [], {}, entrypoint.state.turns).of("big").taken
    entrypoint.one_after_the_other(4)
    entrypoint.start_again()
    turns = entrypoint.state.turns
    assert ({"big": 3, "small": 1}, 44, other.version) == (turns.taken, turns.turn, turns.version)


def test_a_rank_sees_the_jobs_that_run_and_are_held() -> None:
    """As the schedd has told."""
    routes = table("rank")
    told = [
        RouteCount(route="big", jobs=6, idle=1, running=3, held=2),
        RouteCount(route="small", jobs=7, idle=1, running=6, held=0),
    ]
    counters = counters_of(routes, told, {}, Turns())
    big = counters.of("big")
    assert (6, 1, 3, 2) == (big.jobs, big.idle, big.running, big.held)
    ((said,), _) = decide([WaitingJob(JobId(1, 0), 0, {}, "", NOW)], routes, counters, NOW, hold_after=0.0)
    assert "small" == said.decision.route
