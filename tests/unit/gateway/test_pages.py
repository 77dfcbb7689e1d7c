"""What pages are made of, without a browser."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.client import prepare
from kettle.submit.known_attributes import KnownAttributes
from kettle_services.gateway.pages.assets import VENDORED, Assets
from kettle_services.gateway.pages.descriptions import description_like
from kettle_services.gateway.pages.frame import Frame
from kettle_services.gateway.pages.gantt import drawn
from kettle_services.gateway.pages.job_edits import EditFields, changes
from kettle_services.gateway.pages.job_files_page import found_lines
from kettle_services.gateway.pages.job_lists import row_of, states_of
from kettle_services.gateway.pages.jobs_page import QUEUES, JobsView, ShowJobs
from kettle_services.gateway.pages.notices import Notice, packed, unpacked
from kettle_services.gateway.pages.page import Page
from kettle_services.gateway.pages.selections import JobsForm, selection
from kettle_services.gateway.pages.wiring import PAGES
from kettle_services.gateway.pages.wording import ago, apart, clock, counted, number, size, span
from kettle_services.gateway.rest.command_lines import command_of
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.ads.types import Ad, Expr
from kettle_wire.rest.files import Tail
from kettle_wire.rest.jobs import Job
from kettle_wire.rest.past import Phase

from .rendered import TEMPLATES

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
ASSETS = Assets()


def frame(**more: object) -> Frame:
    known: dict[str, object] = {
        "title": "Jobs", "path": "/jobs", "query": {}, "now": NOW, "assets": ASSETS.addresses,
    }  # fmt: skip
    return Frame(**{**known, **more})  # type: ignore[arg-type]


def job(**more: object) -> Job:
    known: dict[str, object] = {
        "id": "7.0@schedd", "schedd": "schedd", "cluster": 7, "proc": 0, "owner": "ada", "state": "held", "submitted": NOW,
    }  # fmt: skip
    return Job(**{**known, **more})  # type: ignore[arg-type]


def jobs_view(*jobs: Job, asked: ShowJobs | None = None) -> JobsView:
    asked = asked or ShowJobs()
    return JobsView(
        list=QUEUES,
        asked=asked,
        states=states_of({"held": len(jobs)}, asked.state),
        matching=len(jobs),
        groups=[],
        more_groups=0,
        rows=[row_of(each) for each in jobs],
        columns=[column for column in QUEUES.columns if column.name in QUEUES.usual],
        next=None,
        filtered=False,
        uncounted="",
        queued=True,
    )


def test_every_template_can_be_compiled() -> None:
    """One that is wrong would be found by the first who opens its page."""
    assert "workflows/list_live.html" in TEMPLATES.names
    assert TEMPLATES.names == [TEMPLATES.compiled(name).name for name in TEMPLATES.names]


def test_vendored_files_are_what_the_table_says() -> None:
    """
    Every vendored file has the hash of the table and a licence beside it, and no other script is there but our own.
    """
    directory = {name: asset.data for name, asset in ASSETS.by_name.items()}
    hashes = {name: hashlib.sha256(directory[name]).hexdigest() for name in VENDORED}
    assert {name: each.sha256 for name, each in VENDORED.items()} == hashes
    own = {
        "charts.js", "kettle.css", "kettle.js", "kettle.svg", "machines.js", "output.js", "pool.css", "sessions.css", "slider.js", "terminal.css", "terminal.js",
        "tasks.css", "workflows.css",
    }  # fmt: skip
    assert own == directory.keys() - VENDORED.keys()
    # What shows a terminal is as large as all else together, and on one page only.
    everywhere = [asset for name, asset in ASSETS.by_name.items() if not name.startswith("xterm")]
    assert sum(len(asset.compressed) for asset in everywhere) < 90_000


def test_output_is_shown_in_whole_lines() -> None:
    """A line without its beginning is left out, unless there is no other; one without its end is shown."""

    def tail(text: str, offset: int) -> Tail:
        return Tail(id="1.0@a", running=True, text=text, offset=offset, end=offset + len(text), size=99)

    assert ["one\n", "Two\n", "thr"] == found_lines(tail("one\nTwo\nthr", 0), "")
    assert ["Two\n"] == found_lines(tail("one\nTwo\nthr", 7), "w")
    assert ["one"] == found_lines(tail("one", 7), "")
    assert [] == found_lines(tail("", 0), "")


def test_only_what_is_other_than_it_was_is_changed() -> None:
    """Values that are as they were are left alone, and others are read as ClassAd expressions."""
    ad: Ad = {"RequestCpus": 2, "RequestMemory": Expr("1024 * Factor"), "JobPrio": 0}
    fields = {"RequestCpus": "2", "RequestMemory": "1024 * Factor", "JobPrio": "5", "Name": "Colour"}
    form = msgspec.convert({**fields, "Value": '"blue"'}, EditFields)
    assert {"JobPrio": 5, "Colour": "blue"} == changes(form, ad)
    with pytest.raises(RequestRefused, match="nothing is other"):
        changes(EditFields(request_cpus="2"), ad)
    with pytest.raises(RequestRefused, match="the value of JobPrio, 1 \\+, cannot be read"):
        changes(EditFields(job_prio="1 +"), ad)


def test_what_jobs_say_is_text_on_every_page() -> None:
    """A command, a reason and an owner that are HTML are shown and not carried out."""
    evil = "<script>alert(1)</script>"
    ad = {"Cmd": f"/bin/{evil}", "Args": "'\"&"}
    view = jobs_view(job(owner=evil, hold_reason=evil, attributes=ad), asked=ShowJobs(filter=f'"{evil}"'))
    html = TEMPLATES.render("jobs.html", frame(person=evil, query={"filter": evil}), view)
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_nothing_on_a_page_is_inline() -> None:
    """No template has an inline script, style or handler, which the policy of the pages would refuse."""
    html = TEMPLATES.render("jobs.html", frame(may_write=True), jobs_view(job()))
    for word in ("style=", "onclick", "<style", "hx-on", "javascript:"):
        assert word not in html
    assert html.count("<script") == html.count("<script src=")


def test_every_address_has_the_prefix_and_the_moment() -> None:
    """Below a prefix all addresses of a page begin with it, and what shows the past leads to the past."""
    shown = frame(prefix="/kettle", as_of=NOW - timedelta(hours=1), query={"owner": "ada", "page": "x"})
    assert "/kettle/jobs/7.0@schedd?as_of=2026-11-25T11:00:00Z" == shown.url("/jobs/7.0@schedd")
    assert "/kettle/jobs?owner=ada&state=held,idle" == shown.here(state=["held", "idle"])
    html = TEMPLATES.render("jobs.html", shown, jobs_view(job()))
    addresses = [
        part.partition('"')[0]
        for part in html.replace('src="', 'href="').replace('action="', 'href="').split('href="')[1:]
    ]
    assert [] == [each for each in addresses if not each.startswith(("/kettle/", "#"))]


def test_pages_are_declared_once() -> None:
    """No two pages have one address, and what stands in the navigation has a title of its own."""
    assert len(PAGES) == len({page.path for page in PAGES})
    linked = [page for page in PAGES if page.link is not None]
    assert len(linked) == len({page.title for page in linked})
    assert not Page("/x", "X", template="x.html").has_past


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.05, "50 ms"), (3.25, "3.2 s"), (61, "1 min 1 s"), (3600, "1 h"), (90061, "1 d 1 h"), (-5, "-5.0 s")],
)
def test_spans_have_two_units_at_most(seconds: float, said: str) -> None:
    """A span of time is said in the two largest units that it has."""
    assert said == span(seconds)


def test_values_have_units_and_times_are_said_twice() -> None:
    """Sizes have a unit, thousands a space between, times the clock and how long ago."""
    assert ["12 B", "1.5 KiB", "8.0 GiB"] == [size(12), size(1536), size(8 << 30)]
    assert "1\N{NARROW NO-BREAK SPACE}234\N{NARROW NO-BREAK SPACE}567" == number(1234567)
    assert ["1 slot", "0 slots"] == [counted(1, "slot"), counted(0, "slot")]
    then = NOW - timedelta(days=1, minutes=5)
    assert ("11-24 11:55:00", "1 d ago") == (clock(then, NOW), ago(then, NOW))
    assert "in 5 min" == ago(NOW + timedelta(minutes=5), NOW)
    assert ["5 min after", "1 d before", "then"] == [
        apart(each, NOW) for each in (NOW + timedelta(minutes=5), then, NOW)
    ]
    assert (
        '<time datetime="2026-11-24T11:55:00Z">11-24 11:55:00 <span class="ago">1 d ago</span></time>'
        == str(frame().when(then))
    )


def phases(*parts: tuple[str, int, str | None]) -> list[Phase]:
    """States with the seconds that each lasted."""
    made: list[Phase] = []
    since = NOW
    for state, seconds, slot in parts:
        until = since + timedelta(seconds=seconds)
        made.append(Phase(state=state, since=since, until=until, slot=slot))
        since = until
    return made


def test_waiting_stands_apart_from_each_run() -> None:
    """Wish 6: the time line has one row for all waiting, and one for each attempt."""
    found = drawn(
        phases(
            ("idle", 30, None),
            ("running", 20, "a"),
            ("idle", 10, None),
            ("running", 20, "b"),
            ("suspended", 20, "b"),
        ),
        NOW + timedelta(seconds=100),
    )
    assert found is not None
    assert ["Waiting", "Run 1", "Run 2"] == [lane.title for lane in found.lanes]
    assert [[(0.0, 300.0), (500.0, 100.0)], [(300.0, 200.0)], [(600.0, 200.0), (800.0, 200.0)]] == [
        [(bar.start, bar.width) for bar in lane.bars] for lane in found.lanes
    ]
    assert "running on a for 20 s" == found.lanes[1].bars[0].says


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["idle", "running", "held", "suspended"]),
            st.integers(0, 10**7),
            st.sampled_from(["a", "b"]),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_every_time_line_fits_into_its_drawing(parts: list[tuple[str, int, str | None]]) -> None:
    """
    Whatever states a job was in, each has one bar, which lies within the drawing, and the axis has few ticks.
    """
    found = drawn(phases(*parts), NOW + timedelta(seconds=sum(seconds for _, seconds, _ in parts)))
    assert found is not None
    bars = [bar for lane in found.lanes for bar in lane.bars]
    assert len(parts) == len(bars)
    assert all(0 <= bar.start and bar.start + bar.width <= 1000.1 for bar in bars)
    assert all(0 <= tick.place <= 1000 for tick in found.ticks)


SELECTIONS: list[tuple[Mapping[str, object], str, list[str]]] = [
    ({}, "true", ["ada"]),
    ({"state": "held,idle"}, "(JobStatus == 5 || JobStatus == 1)", ["ada"]),
    ({"cluster": "3", "filter": "A || B", "owner": "bob"}, "(ClusterId == 3) && (A || B)", ["bob"]),
    ({"since": NOW}, f"QDate >= {int(NOW.timestamp())}", ["ada"]),
]


@pytest.mark.parametrize(("fields", "expression", "owners"), SELECTIONS)
def test_filters_of_a_list_select_the_same_jobs(
    fields: Mapping[str, object], expression: str, owners: list[str]
) -> None:
    """Wish 7: what is done to all that match is done to what the list shows, and to nobody else's jobs."""
    chosen = selection(JobsForm(action="hold", all=True, **fields), "ada")  # type: ignore[arg-type]
    assert (expression, owners, []) == (chosen.filter, chosen.owner, chosen.ids)


def test_a_form_without_jobs_is_refused() -> None:
    """Nothing ticked, several access points and a state that is none are refused with what to do."""
    with pytest.raises(RequestRefused, match="no job is ticked"):
        selection(JobsForm(action="hold"), "ada")
    with pytest.raises(RequestRefused, match="filter by one"):
        selection(JobsForm(action="hold", all=True, schedd="a,b"), "ada")
    with pytest.raises(RequestRefused, match="the filters cannot be used"):
        selection(JobsForm(action="hold", all=True, state="asleep"), "ada")
    assert ["1.0", "1.1"] == selection(JobsForm(action="hold", ids=["1.0,1.1"]), "ada").ids


def test_a_job_becomes_a_description_again() -> None:
    """
    Wish 13: the form of a job that is to be run again has its commands, and leaves out what nobody writes.
    """
    text = description_like(
        {"Cmd": "/bin/a", "Args": "1 2", "Out": "x", "Err": "/dev/null", "RequestCpus": 2},
        KnownAttributes(),
    )
    assert [["executable", "/bin/a"], ["arguments", "1 2"], ["output", "x"], ["request_cpus", "2"]] == [
        [part.strip() for part in line.split("=")] for line in text.splitlines()[:-1]
    ]


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ({"Arguments": "-c for' 'i' 'in' '1;' 'do' 'echo' '$i;' 'done"}, "sh -c 'for i in 1; do echo $i; done'"),
        ({"Arguments": "a b"}, "sh a b"),
        ({"Args": "a  b"}, "sh a  b"),
        ({"Arguments": "it's"}, "sh it's"),
        ({}, "sh"),
    ],
)  # fmt: skip
def test_commands_are_shown_as_one_would_type_them(values: Mapping[str, str], shown: str) -> None:
    """The words of a command are told apart as in a shell, and what has no words is shown as it is kept."""
    assert shown == command_of("sh", values)


@pytest.mark.parametrize(
    ("code", "signal", "shown"),
    [
        (3, None, '<span class="state failed">completed, exit code 3</span>'),
        (None, 9, '<span class="state failed">completed, signal 9 (SIGKILL)</span>'),
        (0, None, '<span class="state completed">completed</span>, exit code <b>0</b>'),
        (None, None, '<span class="state completed">completed</span>'),
    ],
)
def test_a_job_that_failed_does_not_look_like_one_that_went_well(
    code: int | None, signal: int | None, shown: str
) -> None:
    """An exit code other than 0, or a signal, is said in the state, which has another look."""
    ended = job(state="completed", exit_code=code, exit_signal=signal)
    assert f"<td>{shown}</td>" in TEMPLATES.render("jobs.html", frame(), jobs_view(ended))


def test_a_notice_comes_through_its_cookie_and_nothing_else_does() -> None:
    """What a form has done is said once as it was packed; a cookie that is none of ours says nothing."""
    notice = Notice(said=["2 jobs were held."], undo="release", ids="7.0@schedd", back="/jobs?owner=ada")
    assert notice == unpacked(packed(notice))
    assert [None] * 4 == [unpacked(text) for text in ("", "???", "ä", packed(notice)[:-8])]


@pytest.mark.parametrize(
    "back", ["//evil.example", "https://evil.example", "/jobs\r\nX: y", "/jobs/\\evil", "/jobsx"]
)
def test_forms_lead_back_only_to_pages_of_jobs(back: str) -> None:
    """No form leads to another site, nor adds a header to the answer."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"action": "hold", "back": back}, JobsForm)
    assert "/jobs?owner=ada" == msgspec.convert({"action": "hold", "back": "/jobs?owner=ada"}, JobsForm).back


@pytest.mark.parametrize(
    "more",
    [
        """arguments = "-c 'echo $(DOLLAR)(date) ""it'' s""'"\nenvironment = "A=1 B='x y' C=$(DOLLAR)ENV(HOME)\"""",
        '+Project = "a \\"b\\""\n+Depth = 3 + JobPrio',
        'requirements = (TARGET.Memory > 7 || TARGET.Name == "a)(") && TARGET.Arch == "ARM64"\nrank = Mips',
        "should_transfer_files = YES\nwhen_to_transfer_output = ON_EXIT\nmax_retries = 3\nsuccess_exit_code = 2",
        'universe = local\nperiodic_hold = JobPrio > 5\nbatch_name = a b\ndescription = "of it"\npriority = 4',
        'arguments = a \\"b\\" c\nperiodic_remove = true\nconcurrency_limits = matlab:2',
    ],
)
def test_a_job_like_another_has_all_that_was_said_of_it(more: str, tmp_path: Path) -> None:
    """
    The description of a job that is to be run again makes the same ad: also its environment, its own attributes, requirements and
    retries, and what looks like a macro in its words.
    """
    first = prepare(f"executable = /bin/sh\nrequest_memory = 64\n{more}\nqueue\n", cwd=tmp_path, environ={})
    again = prepare(description_like(first.ad, KnownAttributes()), cwd=tmp_path, environ={})
    assert first.ad == again.ad


def test_what_a_description_cannot_say_again_is_named() -> None:
    """A condition that is mixed with those of retries is not lost without a word."""
    ad: Ad = {
        "Cmd": "/bin/a",
        "JobMaxRetries": 2,
        "OnExitRemove": Expr("NumJobCompletions > JobMaxRetries || x"),
    }
    assert "# Not taken over: retry_until or on_exit_remove" in description_like(ad, KnownAttributes())


def test_a_page_that_is_not_live_does_not_say_now() -> None:
    """What was true when a page was loaded is not called the present, unless the page follows it."""
    assert ">Now<" in TEMPLATES.render("jobs.html", frame(is_live=True), jobs_view(job()))
    assert ">As loaded<" in TEMPLATES.render("jobs.html", frame(), jobs_view(job()))
