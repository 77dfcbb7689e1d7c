"""Logs in each form, as they grow."""

from datetime import UTC
from pathlib import Path

import pytest

from kettle.userlog import (
    Executing,
    LogReader,
    Submitted,
    UserLogFormatError,
    event_of,
    format_of,
    heading,
    parse,
    render,
)
from kettle_wire.jobs import JobId

SUBMITTED = Submitted(job=JobId(12, 3), at=1_790_000_000, host="<10.0.0.1:9618>", notes=["DAG Node: A"])
EXECUTING = Executing(job=JobId(12, 3), at=1_790_000_001, host="<h>", slot="s", attributes=[("Cpus", "1")])
FORMS = ("", "XML", "JSON")


def text(form: str) -> str:
    return "".join(render(event, UTC, format_of(form)) for event in (SUBMITTED, EXECUTING))


@pytest.mark.parametrize("form", FORMS)
def test_a_log_that_grows_bit_by_bit(form: str, tmp_path: Path) -> None:
    """
    Each event is given once, when it is there as a whole, also to a reader that goes on where another stopped.
    """
    path, whole = tmp_path / "log", text(form)
    path.touch()
    log = LogReader(path)
    read: list[int] = []
    for at in range(0, len(whole), 13):
        with path.open("a") as file:
            file.write(whole[at : at + 13])
        log = LogReader(path, log.offset)
        while (block := log.next()) is not None:
            read.append(heading(block).number)
    assert [0, 1] == read
    assert len(whole.encode()) == log.offset
    assert [whole] == ["".join(block.text for block in LogReader(path).all())]


@pytest.mark.parametrize("form", FORMS)
def test_what_all_events_say(form: str, tmp_path: Path) -> None:
    """Number, job and time without the rest."""
    (tmp_path / "log").write_text(text(form))
    assert [(0, 12, 3, "2026-09-21 14:13:20"), (1, 12, 3, "2026-09-21 14:13:21")] == [
        heading(block) for block in LogReader(tmp_path / "log").all()
    ]


@pytest.mark.parametrize(("first", "second"), [(a, b) for a in FORMS for b in FORMS if a != b])
def test_a_log_has_one_form(first: str, second: str, tmp_path: Path) -> None:
    """
    Of a log in two it is said where the other one begins, and what to do; what stands before it is read.
    """
    path = tmp_path / "log"
    path.write_text(text(first) + text(second))
    line = text(first).count("\n") + 1
    with pytest.raises(
        UserLogFormatError, match=rf"^line {line}: .* one form: let the jobs .* agree on log_xml"
    ):
        parse(path.read_text())
    log = LogReader(path)
    assert [0, 1] == [heading(block).number for block in (log.next(), log.next()) if block]
    for reader in (log, LogReader(path, log.offset)):
        with pytest.raises(UserLogFormatError, match=rf"^line {line}: "):
            reader.next()


def test_an_event_inside_of_another() -> None:
    """Programs that write in two forms at once are found out too."""
    with pytest.raises(UserLogFormatError, match=r"^line 2: this is in JSON"):
        parse("000 (001.000.000) 2026-09-21 12:00:00 Job submitted from host: <h>\n{\n}\n...\n")


def test_events_as_other_programs_write_them() -> None:
    """Around XML stands what stands around a document; an object may stand on one line."""
    xml = f'<?xml version="1.0"?>\n<!DOCTYPE classads SYSTEM "classads.dtd">\n<classads>\n{text("XML")}'
    assert [0, 1] == [event.number for event in parse(xml)]
    line = '{"MyType":"JobReleaseEvent","EventTypeNumber":13,"EventTime":"2026-09-21T12:00:00","Cluster":5,"Proc":0}\n'
    assert [13, 13] == [event.number for event in parse(line * 2)]


@pytest.mark.parametrize(
    "body",
    ['{\n  "Cluster": 1\n}\n', "{\n  nonsense\n}\n", "<c>\n  <a>\n</c>\n", "<c>\n</c>\n", "hello\n...\n"],
)
def test_what_is_no_event_is_refused(body: str, tmp_path: Path) -> None:
    """With the line at which it begins."""
    (tmp_path / "log").write_text(body)
    [block] = LogReader(tmp_path / "log").all()
    with pytest.raises(UserLogFormatError, match=r"^line 1: "):
        event_of(block)
    with pytest.raises(UserLogFormatError, match=r"^line 1: "):
        heading(block)


@pytest.mark.parametrize("options", ["XML JSON", "xml, Json", "ISO", "UTC, WHAT"])
def test_options_that_there_are_not(options: str) -> None:
    """They are refused with what there is."""
    with pytest.raises(ValueError, match=r"leave one of the two out|there are XML, JSON, ISO_DATE"):
        format_of(options)


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ("", "001 (012.003.000) 2026-09-21 14:13:21 "),
        ("ISO_DATE utc sub_second", "001 (012.003.000) 2026-09-21 14:13:21.000Z "),
        ("LEGACY", "001 (012.003.000) 09/21 14:13:21 "),
        ("XML !XML SUB_SECOND", "001 (012.003.000) 2026-09-21 14:13:21.000 "),
        ("!ISO_DATE,UTC", "001 (012.003.000) 09/21 14:13:21 "),
        ("JSON", "{"),
    ],
)
def test_options(options: str, first: str) -> None:
    """HTCondor's words, in any case, some of them taken back."""
    assert render(EXECUTING, UTC, format_of(options)).startswith(first)
