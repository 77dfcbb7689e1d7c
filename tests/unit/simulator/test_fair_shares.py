"""Max-min fair shares, by their definition."""

import random

import pytest

from kettle_services.simulator.platforms.fair_shares import NO_LIMIT, Flow, fair_shares


@pytest.mark.parametrize("seed", range(100))
def test_whoever_has_less_than_his_limit_is_kept_by_a_full_link_where_nobody_has_more(seed: int) -> None:
    draw = random.Random(seed)
    capacities = [draw.choice([1.0, 10.0, 250.0]) for _ in range(draw.randint(1, 6))]
    flows = {
        number: Flow(
            links=tuple(draw.sample(range(len(capacities)), draw.randint(1, len(capacities)))),
            weight=draw.choice([1.0, 1.0, 3.0]),
            limit=draw.choice([NO_LIMIT, NO_LIMIT, 0.5, 20.0]),
        )
        for number in range(draw.randint(1, 12))
    }
    shares = fair_shares(flows, capacities)
    used = [
        sum(shares[number] for number, flow in flows.items() if link in flow.links)
        for link in range(len(capacities))
    ]
    for load, capacity in zip(used, capacities, strict=True):
        assert load <= capacity * (1 + 1e-9)
    for number, flow in flows.items():
        if shares[number] == pytest.approx(flow.limit):
            continue
        level = shares[number] / flow.weight
        assert any(
            used[link] == pytest.approx(capacities[link])
            and all(
                shares[other] / beside.weight <= level * (1 + 1e-9)
                for other, beside in flows.items()
                if link in beside.links
            )
            for link in flow.links
        )


def test_a_flow_over_no_link_has_no_limit_but_its_own() -> None:
    assert fair_shares({1: Flow(links=()), 2: Flow(links=(), limit=5.0)}, []) == {1: NO_LIMIT, 2: 5.0}
    assert fair_shares({}, [1.0]) == {}
