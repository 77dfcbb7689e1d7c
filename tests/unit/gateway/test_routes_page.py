"""The page of an entrypoint's routes, without a browser."""

from datetime import UTC, datetime, timedelta
from typing import Any

from kettle_services.gateway.pages.assets import Assets
from kettle_services.gateway.pages.frame import Frame
from kettle_services.gateway.pages.pool.entrypoint_routes import AskedRoutes, RoutesView
from kettle_wire.rest.entrypoint import RouteOf, Routes, VoOf

from .rendered import TEMPLATES

NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)
EVIL = "<script>alert(1)</script>"


def page(found: Routes | None, trouble: str = "") -> str:
    frame = Frame(title="Routes", path="/routes", query={}, now=NOON, assets=Assets().addresses)
    view = RoutesView(asked=AskedRoutes(), found=found, trouble=trouble)
    return TEMPLATES.render("pool/routes.html", frame, view)


def test_a_route_says_why_it_takes_no_jobs() -> None:
    """
    Each route has where it leads, how full it is and why it is closed, each VO its limits; what others have written is text.
    """
    counts: Any = {"idle": 3, "running": 7, "held": 0}
    routes = [
        RouteOf(name="Here", target="pool", max_jobs=100, max_idle_jobs=50, jobs=10, **counts),
        RouteOf(name=EVIL, target="batch slurm", max_jobs=10, max_idle_jobs=5, jobs=10, closed="it is full", **counts),
        RouteOf(
            name="Slow", target="batch pbs", max_jobs=10, max_idle_jobs=5, jobs=0, failure=EVIL,
            slowed_until=NOON + timedelta(minutes=5), **counts,
        ),
    ]  # fmt: skip
    vos = [
        VoOf(vo="atlas", jobs=10, max_jobs=20, **counts),
        VoOf(jobs=1, full="it may have no more", **counts),
    ]
    found = Routes(
        version="7",
        source="/etc/routes",
        loaded=NOON,
        waiting=4,
        routes=routes,
        vos=vos,
        draining="of a disk",
    )
    text = page(found)
    assert '<th scope="row">Here</th><td>this pool</td>\n<td>yes</td>' in text
    assert "10 of 100" in text
    assert '<b class="bad">no</b>: it is full' in text
    assert "too many failed: again" in text
    assert "10 of 20" in text
    assert "it may have no more" in text
    assert "takes no jobs: of a disk" in text
    assert EVIL not in text


def test_a_pool_without_an_entrypoint_says_how_there_is_one() -> None:
    """The refusal of the interface, which says what to do, stands on the page."""
    assert "The access point ap has no compute entrypoint." in page(
        None, "the access point ap has no compute entrypoint"
    )
