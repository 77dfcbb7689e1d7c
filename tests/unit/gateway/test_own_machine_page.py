"""What the page of somebody's own machines shows."""

from datetime import UTC, datetime

from kettle_services.gateway.pages.assets import Assets
from kettle_services.gateway.pages.frame import Frame
from kettle_services.gateway.pages.pool.own_machines import OwnMachinesView
from kettle_wire.rest.administration import JoinToken, Worker, Workers

from .rendered import TEMPLATES

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def page(*workers: Worker, tokens: list[JoinToken] | None = None, trouble: str = "") -> str:
    view = OwnMachinesView(found=Workers(workers=list(workers), join_tokens=tokens or []), trouble=trouble)
    frame = Frame(title="Your machines", path="/own-machines", query={}, now=NOON, assets=Assets().addresses)
    return TEMPLATES.render("pool/own_machines.html", frame, view)


def test_only_what_somebody_has_let_in_has_a_button() -> None:
    """
    A machine that an administrator has let in for this person's jobs is shown, and who removes it is said.
    """
    own = Worker(name="laptop", joins="worker", owner="ada", own=True, joined=NOON, expires=NOON)
    given = Worker(name="node1", joins="worker", owner="ada", joined=NOON)
    html = page(own, given)
    assert 1 == html.count('action="/own-machines/remove"')
    assert '<input type="hidden" name="machine" value="laptop">' in html
    assert "let in by an administrator" in html
    assert "renewed" in html


def test_who_has_none_is_told_how_one_joins() -> None:
    """And who cannot be told, because no iam answers, is told that."""
    assert "kettle worker token create --own" in page()
    troubled = page(trouble="this pool has no iam")
    assert "This pool has no iam." in troubled
    assert "kettle worker token create" not in troubled


def test_names_are_text() -> None:
    """A machine and a token are called what somebody has chosen."""
    evil = "'\"><x-evil onclick=alert(1)>{{7*7}}"
    token = JoinToken(id=evil, joins=evil, by=evil, created=NOON, expires=NOON, uses=0, most_uses=1)
    html = page(Worker(name=evil, joins=evil, own=True, joined=NOON), tokens=[token])
    assert html.count("&lt;x-evil onclick=alert(1)&gt;{{7*7}}") >= 6
    assert "<x-evil" not in html
