"""Routes lead to batch systems that there are, and to no others."""

import pytest

from kettle.routes import Counters, RouteCount, RouteFileError, read_routes, route
from kettle.routes.targets import leading_to, named, with_systems
from kettle_wire.ads import Ad, Expr
from kettle_wire.routes import RefusalKind

SYSTEMS = {"cluster": "slurm", "old": "sge"}
AD: Ad = {"JobUniverse": 5, "Site": "elsewhere", "Owner": "ada"}


def text(statements: str) -> str:
    return f"JOB_ROUTER_ROUTE_NAMES = Far\nJOB_ROUTER_ROUTE_Far @=end\n{statements}\n@end\n"


@pytest.mark.parametrize("resource", ["batch cluster", "batch slurm", "BATCH old queue", "batch sge"])
def test_a_batch_system_is_called_by_its_name_or_its_kind(resource: str) -> None:
    """Either is enough for a route to be taken."""
    table = leading_to(read_routes(text(f'GridResource = "{resource}"'), "routes"), SYSTEMS)
    assert SYSTEMS == table.systems
    assert "Far" == route(AD, table, Counters(routes={"Far": RouteCount()}), 0).route


def test_the_first_of_its_kind_is_meant() -> None:
    """A name counts for more than a kind, and what is neither is nobody."""
    kinds = {"slurm": "sge", "a": "slurm", "b": "slurm"}
    assert ["slurm", "slurm", "b", "c"] == [named(word, kinds) for word in ("slurm", "sge", "b", "c")]


@pytest.mark.parametrize(
    ("statements", "sentence"),
    [
        (
            'REQUIREMENTS true\nGridResource = "batch clusters"',
            'route Far, line 4: GridResource "batch clusters" leads nowhere: there is no batch system clusters in [[ce.batch]], which has cluster, old; did you mean cluster?',
        ),
        (
            'GridResource = "batch cluster"\nSET GridResource "batch lsf"',
            'route Far, line 4: GridResource "batch lsf" leads nowhere: there is no batch system lsf in [[ce.batch]], which has cluster, old',
        ),
    ],
)
def test_a_file_that_leads_nowhere_is_refused(statements: str, sentence: str) -> None:
    """With the line, and with what there is."""
    with pytest.raises(RouteFileError) as refused:
        leading_to(read_routes(text(statements), "routes"), SYSTEMS)
    assert [sentence] == [str(each) for each in refused.value.problems]


def test_without_batch_systems_only_routes_of_this_pool_are_taken() -> None:
    """Which is said."""
    with pytest.raises(RouteFileError, match=r"no batch system slurm in \[\[ce.batch\]\], which is empty"):
        leading_to(read_routes(text('GridResource = "batch slurm"'), "routes"), {})
    assert {} == leading_to(read_routes(text("UNIVERSE VANILLA"), "routes"), {}).systems


@pytest.mark.parametrize(
    "statements",
    ['EVALSET GridResource strcat("batch ", Site)', 'GridResource = "batch elsewhere"'],
)
def test_a_job_gets_no_route_to_nowhere(statements: str) -> None:
    """
    Where a route leads may depend on the job, and a batch system may be taken out of the settings while its routes are in force.
    """
    table = with_systems(read_routes(text(statements), "routes"), SYSTEMS)
    (refusal,) = route(AD, table, Counters(routes={"Far": RouteCount()}), 0).refusals
    assert RefusalKind.FAILED is refusal.why
    assert "there is no batch system elsewhere in [[ce.batch]], which has cluster, old" == refusal.sentence


def test_what_nobody_knows_is_no_reason() -> None:
    """
    A file is tried away from its entrypoint as well; and what is computed to no text is for the schedd to refuse.
    """
    table = read_routes(text('GridResource = "batch anywhere"'), "routes")
    assert "Far" == route(AD, table, Counters(routes={"Far": RouteCount()}), 0).route
    computed = with_systems(read_routes(text("SET GridResource MySite"), "routes"), SYSTEMS)
    decision = route({**AD, "MySite": Expr("x")}, computed, Counters(routes={"Far": RouteCount()}), 0)
    assert "Far" == decision.route
