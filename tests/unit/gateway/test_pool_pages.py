"""What the pages of the pool show, worked out from answers of the REST interface."""

from datetime import UTC, datetime, timedelta
from typing import Any

from kettle_services.gateway.pages.assets import Assets
from kettle_services.gateway.pages.frame import Frame
from kettle_services.gateway.pages.pool.administration import (
    AdministrationView,
    AskedAdministration,
    troubles,
)
from kettle_services.gateway.pages.pool.log import steps
from kettle_services.gateway.pages.pool.shares import group_rows
from kettle_services.gateway.pages.pool.usage import COLUMNS, table, usage_bars
from kettle_services.gateway.rest.hosts import host_of
from kettle_wire.commands.negotiator import GroupStanding
from kettle_wire.rest.administration import (
    Audit,
    Ban,
    Bans,
    Deed,
    JoinToken,
    Logins,
    Session,
    Worker,
    Workers,
)
from kettle_wire.rest.standings import Fairshare, Share, ShareGroup
from kettle_wire.rest.usage import UsageAnswer, UsageOf

from .rendered import TEMPLATES

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_a_table_of_usage_has_no_formulas() -> None:
    """A spreadsheet computes nothing that somebody wrote as the name of a project."""
    rows = [UsageOf(key={"project": "=1+1", "owner": "ada"}, jobs=2, core=1.5)]
    head, row = table(["project", "owner"], rows).splitlines()
    assert ["project", "owner", *COLUMNS] == head.split(",")
    assert row.startswith("'=1+1,ada,2,0,0.0,1.5,")


def test_days_without_use_have_a_bar_too() -> None:
    """Every day of the time has its place, and the largest is as high as there is room."""
    used = [UsageOf(key={"day": "2026-02-28"}, core=2.0), UsageOf(key={"day": "2026-03-01"}, core=4.0)]
    answer = UsageAnswer(since=NOON - timedelta(days=3), until=NOON, rows=used, total=UsageOf(key={}))
    bars = usage_bars(answer, "day")
    assert ["2026-02-26", "2026-02-27", "2026-02-28", "2026-03-01"] == [bar.label for bar in bars]
    assert [0.0, 0.0, 50.0, 100.0] == [bar.height for bar in bars]


def test_steps_do_not_lead_into_the_future() -> None:
    """From the present only earlier moments are offered; from the past later ones too, and the present."""
    assert ["a day earlier", "an hour earlier", "a minute earlier", "now"] == [
        step.label for step in steps(NOON, NOON)
    ]
    from_the_past = steps(NOON - timedelta(minutes=30), NOON)
    assert "a minute later" in [step.label for step in from_the_past]
    assert "an hour later" not in [step.label for step in from_the_past]
    assert from_the_past[-1].moment is None


def standing(name: str) -> GroupStanding:
    return GroupStanding(
        name=name,
        config_quota=1.0,
        dynamic=False,
        quota=1.0,
        subtree_quota=1.0,
        accept_surplus=False,
        autoregroup=False,
        requested=0.0,
        allotted=0.0,
        used=0.0,
        subtree_used=0.0,
        sort_key=0.0,
    )


def share(name: str, group: str = "") -> Share:
    return Share(name=name, group=group, share=1.0, part=1.0, in_use=1.0, effective=1.0)


def test_groups_are_shown_as_a_tree_with_their_submitters() -> None:
    """A group stands below the one above it, deeper by one, with the shares of those in it."""
    found = Fairshare(
        at=NOON,
        half_life=86400.0,
        groups=[
            ShareGroup(standing=standing("physics")),
            ShareGroup(parent="physics", standing=standing("physics.atlas")),
        ],
        shares=[share("ada", "physics.atlas"), share("bob")],
    )
    rows = group_rows(found)
    assert [("physics", 0, []), ("physics.atlas", 1, ["ada"])] == [
        (row.group.standing.name, row.depth, [one.name for one in row.shares]) for row in rows if row.group
    ]
    ungrouped = [one.name for row in rows if row.group is None for one in row.shares]
    assert ["bob"] == ungrouped


def master(**more: Any) -> Any:
    return {
        "Name": "node1",
        "KettleVersion": "1.0",
        "DaemonStartTime": 1000,
        "LastHeardFrom": 2000,
        "DaemonList": "MASTER, schedd, startd.big",
        "SCHEDD_State": "Running",
        "SCHEDD_Pid": 17,
        "SCHEDD_StartTime": 1001,
        "STARTD_BIG_State": "Waiting",
        "STARTD_BIG_EndTime": 1500,
        "STARTD_BIG_Restarts": 3,
        "STARTD_BIG_LastExit": "signal 11",
        **more,
    }


def test_services_that_do_not_run_are_said_in_words() -> None:
    """A host's ad says which daemons it keeps; those that do not run, or hung, are troubles."""
    host = host_of(master(SCHEDD_Hangs=1))
    assert [("schedd", 17), ("startd.big", None)] == [(each.name, each.pid) for each in host.daemons]
    assert [
        "schedd on node1 hung once, and was started again",
        "startd.big on node1 is waiting: signal 11",
    ] == troubles([host])
    assert [] == troubles([host_of(master(STARTD_BIG_State="Standby"))])


def test_what_others_say_is_text_on_the_page_of_administrators() -> None:
    """The name of a banned person, a reason, a note of a session, a machine and the words of the record."""
    evil = "'\"><x-evil onclick=alert(1)>{{7*7}}"
    deed = Deed(at=NOON, what=evil, who=evil, whom=evil, sentence=evil, address=evil, alarm=True, frame=1)
    session = Session(
        id=evil, person=evil, scopes=[evil], audiences=[evil], note=evil, opened=NOON, used=NOON, expires=NOON
    )
    token = JoinToken(
        id=evil, joins=evil, owner=evil, by=evil, created=NOON, expires=NOON, uses=0, most_uses=1
    )
    view = AdministrationView(
        asked=AskedAdministration(),
        audit=Audit(deeds=[deed], more=True),
        alarms=1,
        bans=Bans(bans=[Ban(whom=evil, reason=evil, by=evil, since=NOON)]),
        sessions=Logins(sessions=[session]),
        workers=Workers(
            workers=[Worker(name=evil, joins=evil, owner=evil, joined=NOON)], join_tokens=[token]
        ),
    )
    shown = Frame(title="Audit", path="/admin", query={}, now=NOON, assets=Assets().addresses)
    html = TEMPLATES.render("pool/administration.html", shown, view)
    assert html.count("&lt;x-evil onclick=alert(1)&gt;{{7*7}}") >= 12
    assert "<x-evil" not in html
