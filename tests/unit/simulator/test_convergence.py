"""
Usage converges to what the factors say, on the simulated clock.

A submitter's share is in inverse proportion to real priority times factor.  As long as real priorities are equal, because
their half-life is very long, usage is in inverse proportion to the factors.  With a half-life that is short against the
period the real priority p of who uses u becomes u, so u is in proportion to 1/(u*f): usage is in inverse proportion to the
square root of the factors.
"""

import pytest

from kettle.testing.invented_history import BEGIN, SHARDS, InventedHistory, moment
from kettle_services.negotiator.settings import NegotiatorSettings
from kettle_services.simulator.domain.recording import Recording
from kettle_services.simulator.domain.simulation import PeriodSimulation
from kettle_services.simulator.domain.submitter_sums import Tally
from kettle_services.simulator.what_if_file import rules

HOUR = 3600
CORES = 8
STEP_US = 10_000_000


def played(
    users: int, jobs: int, machines: int, *, half_life: float, power: float
) -> tuple[Tally, dict[str, float]]:
    """
    An hour with five different factors; what each should have as a part of all.

    Jobs take 200 to 550 s, so all together want 1.3 times what there is; everybody has jobs in proportion to what is due.
    There are eight such times, and not one for each job, because each is a request of its own in each of hundreds of cycles.
    """
    factors = {f"user{number:02}": 1000.0 * (1 + number % 5) for number in range(users)}
    due = {name: factor**-power for name, factor in factors.items()}
    due = {name: part / sum(due.values()) for name, part in due.items()}
    past = InventedHistory()
    for number in range(machines):
        past.machine(f"m{number}", cpus=CORES)
    for place, (name, part) in enumerate(due.items()):
        past.submit(name, seconds=[200 + 50 * ((k * 5 + place) % 8) for k in range(round(jobs * part))])
    recording = Recording(moment(-1), moment(HOUR), SHARDS)
    for frame in past.frames():
        recording.feed(frame)
    by = rules(NegotiatorSettings(priority_halflife=half_life), worklife=0.0, factors=factors)
    return PeriodSimulation(recording.period(), by, step=STEP_US).run(), due


def misplaced(used: dict[str, float], due: dict[str, float]) -> float:
    """The part of all usage that is with somebody else than it is due to."""
    whole = sum(used.values())
    return sum(abs(used[name] / whole - part) for name, part in due.items()) / 2


def between(tally: Tally, names: list[str], since: int, until: int) -> dict[str, float]:
    """What each used from one second to another."""
    moments = [moment(second) for second in range(since, until, 5)]
    return {name: sum(tally.usage(name, moments)) for name in names}


pytestmark = pytest.mark.slow


def test_an_hour_of_many_users_follows_their_factors() -> None:
    """
    15 users, 1,000 jobs, 10 machines of 8 cores: less than 2 % of the usage is with somebody else than the factors say, and
    nobody has on average half a core of the 80 more or less than is due.
    Nearly all is used: a core waits 5 s for the next cycle on average, of some 400.
    """
    machines = 10
    tally, due = played(15, 1_000, machines, half_life=1e9, power=1.0)
    sums = tally.sums({name: [name] for name in due})
    used = {name: one.weighted_hours for name, one in sums.items()}
    assert misplaced(used, due) < 0.02
    whole = sum(used.values())
    assert max(abs(used[name] - part * whole) for name, part in due.items()) < 0.5
    assert whole > 0.97 * machines * CORES
    assert all(one.waiting for one in sums.values()), "a submitter without jobs cannot have a share"


def test_with_a_short_half_life_usage_goes_from_factors_to_their_roots() -> None:
    """
    Half-life 300 s, so twelve in the hour. In the first two minutes all priorities are still near each other and usage is nearer
    to 1/f; in the second half hour less than 2 % of it is elsewhere than 1/sqrt(f) says, and that is much nearer than 1/f.
    """
    tally, roots = played(10, 2_000, 20, half_life=300.0, power=0.5)
    names = list(roots)
    inverse = {name: 1 / (1 + number % 5) for number, name in enumerate(names)}
    inverse = {name: part / sum(inverse.values()) for name, part in inverse.items()}
    first, last = between(tally, names, 20, 120), between(tally, names, HOUR // 2, HOUR)
    assert misplaced(first, inverse) < misplaced(first, roots)
    assert misplaced(last, roots) < 0.02
    assert misplaced(last, inverse) > 0.1
    assert pytest.approx(BEGIN + HOUR) == tally.until / 1e6
