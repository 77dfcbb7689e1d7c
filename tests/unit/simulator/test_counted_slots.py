"""
Claimed slots that only count in the negotiator's picture of a simulated pool: nobody decides otherwise for it.
"""

import random
from pathlib import Path

import msgspec

from kettle.archive import ArchivedLog
from kettle_services.simulator.domain.clock import US
from kettle_services.simulator.domain.recording import Recording
from kettle_services.simulator.domain.simulation import NEGOTIATION, PeriodSimulation
from kettle_services.simulator.domain.slot_numbers import SlotNumbers
from kettle_services.simulator.results.recorded_events import RecordedEvents
from kettle_services.simulator.results.run_description import RunDescription
from kettle_services.simulator.simulation import Simulation
from kettle_services.simulator.simulation_file import read
from kettle_wire.events import ClaimGranted, CycleNegotiated, Event, JobVacated

_STUDY = """\
model = "kettle"
seed = 1
until = "900 s"
[negotiator]
interval = 60
groups = { physics = { quota = 6 } }
[kettle]
claim_worklife = 120
[[platform]]
hosts = 3
cores = 4
mtbf = 400
repair = 60
notice = "20 s"
[[platform]]
hosts = 2
cores = 8
joins = 200
[[platform]]
cores = 4
leaves = 500
[[workload]]
jobs = 40
every = "6 s"
arrivals = "poisson"
duration = { kind = "exponential", mean = 150 }
user = "ada"
[[workload]]
jobs = 40
every = "9 s"
cores = 2
duration = 100
user = "physics.bob"
rank = "TARGET.Cpus"
[[workload]]
jobs = 20
every = "20 s"
cores = 3
duration = 60
user = "cy"
"""


_PREEMPTING = """\
model = "kettle"
factors = { bob = 1000000 }
negotiator.preemption_requirements = "RemoteUserPrio > TARGET.SubmitterUserPrio * 1.2"
machines.user_preemption = true
[platform]
cores = 3
[[workload]]
jobs = 2
duration = 1000
user = "bob"
[[workload]]
jobs = 3
duration = 60
every = 10
user = "ada"
"""


def study(directory: Path, text: str) -> Simulation:
    (directory / "study.toml").write_text(text)
    return read(directory / "study.toml").simulation


def events(simulation: Simulation, *, explained: bool) -> list[tuple[int, str, str, Event]]:
    """All but what is recorded of cycles."""
    found: list[tuple[int, str, str, Event]] = []

    def keep(at: int, shard: str, stream: str, event: Event) -> None:
        found.append((at, shard, stream, event))

    course = msgspec.structs.replace(simulation.course, explained=explained)
    msgspec.structs.replace(simulation, course=course).run(keep)
    assert explained == any(isinstance(event, CycleNegotiated) for _, _, _, event in found)
    return [one for one in found if not isinstance(one[3], CycleNegotiated)]


def test_who_asks_for_reasons_gets_the_same_simulation(tmp_path: Path) -> None:
    """
    For reasons claimed slots have to be in the table, and else they only count: hosts fail, come and go, and no job goes elsewhere.
    """
    simulation = study(tmp_path, _STUDY)
    explained = events(simulation, explained=True)
    assert explained == events(simulation, explained=False)
    assert {"JobVacated", "MachineLeft", "JobCompleted"} <= {type(event).__name__ for *_, event in explained}


def test_slots_that_others_may_get_stay_in_the_table(tmp_path: Path) -> None:
    """Where the pool's priorities count, what runs has to make room."""
    simulation = study(tmp_path, _PREEMPTING)
    explained = events(simulation, explained=True)
    assert explained == events(simulation, explained=False)
    reasons = {event.ending.reason for *_, event in explained if isinstance(event, JobVacated)}
    assert reasons == {"the pool prefers another"}


async def test_a_simulated_pool_is_played_again_from_the_middle(tmp_path: Path) -> None:
    """Its claims have the names that simulated ones have, and none of them is given again."""
    description = RunDescription(kettle="", file="", sha256="", seed=0, rules={})
    simulation = study(tmp_path, _STUDY)
    assert simulation.rules is not None
    with RecordedEvents(tmp_path / "events", description) as recorded:
        simulation.run(recorded)
    log = ArchivedLog(tmp_path / "events")
    shards = [tenure.shard for tenure in await log.shards()]
    recording = Recording(300 * US, 800 * US, shards)
    for shard in shards:
        async for frame in log.read(shard):
            recording.feed(frame)
    granted: list[str] = []

    def note(_at: int, shard: str, stream: str, event: Event) -> None:
        if shard != NEGOTIATION and isinstance(event, ClaimGranted):
            granted.append(stream)

    period = recording.period()
    before = {f"claim/{claim}" for queue in period.queues().values() for claim in queue.claims}
    tally = PeriodSimulation(period, simulation.rules, record=note).run()
    assert before
    assert granted
    assert len(granted) == len(set(granted))
    assert before.isdisjoint(granted)
    assert len(tally.starts) > 10


def test_a_dynamic_slot_gets_the_smallest_number_that_none_has() -> None:
    """
    Whatever numbers come and go, those of a recorded pool among them: two claims may have one for a while.
    """
    draw, numbers, used = random.Random(7), SlotNumbers(), list[int]()
    for _ in range(1000):
        smallest = next(number for number in range(1, len(used) + 2) if number not in used)
        assert smallest == numbers.smallest
        if used and draw.random() < 0.5:
            numbers.free(used.pop(draw.randrange(len(used))))
        else:
            used.append(draw.choice([smallest, smallest, smallest, draw.randint(1, 30)]))
            numbers.take(used[-1])
