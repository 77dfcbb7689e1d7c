"""What a plugin did, as a code and a sentence: the whole table."""

import errno
from typing import Any

import msgspec
import pytest

from kettle.transfer.hold_codes import Direction, Ran, ending_of, nobody
from kettle.transfer.plugin import Move, Plugin, chosen
from kettle.transfer.plugin_protocol import ProtocolError, Result, answer, asked, capabilities, question
from kettle_wire.attempts import Ending

SITE = Plugin(path="/opt/foo_plugin", methods=("foo",))
JOBS = Plugin(path="/sandbox/mine", methods=("foo",), jobs=True)
MOVE = Move("foo://me:secret@host/a/f?key=secret", "/sandbox/f")
DOWN, UP = Direction(upload=False), Direction(upload=True)


def fine(**other: Any) -> Result:
    return msgspec.structs.replace(Result(url=MOVE.url, path=MOVE.path, success=True), **other)


def codes(ending: Ending | None) -> tuple[bool, int, int] | None:
    return None if ending is None else (ending.holds, ending.code, ending.subcode)


CASES = [
    ("done", SITE, DOWN, Ran(answer=[fine()]), 5, None, ""),
    ("by name", SITE, DOWN, Ran(answer=[fine(url="")]), 5, None, ""),
    ("sent", SITE, UP, Ran(answer=[fine()]), 5, None, ""),
    ("exit code", SITE, DOWN, Ran(status=3 << 8), None, (True, 13, 768), "exited with 3"),
    ("exit code out", SITE, UP, Ran(status=1 << 8), 5, (True, 12, 256), "sending f to foo://host/a/f"),
    (
        "its words",
        SITE,
        DOWN,
        Ran(status=1 << 8, answer=[fine(success=False, error="no such key")]),
        None,
        (True, 13, 256),
        "no such key",
    ),
    ("stderr", SITE, DOWN, Ran(status=1 << 8, said="Traceback"), None, (True, 13, 256), "Traceback"),
    (
        "their words",
        SITE,
        DOWN,
        Ran(status=256, said="no //a/f?key=secret"),
        None,
        (True, 13, 256),
        "1: no //a",
    ),
    ("signal", SITE, DOWN, Ran(status=9), None, (True, 13, 9), "killed by signal 9"),
    ("hangs", SITE, DOWN, Ran(late=5.0), None, (True, 13, errno.ETIME), "after 5 seconds"),
    ("not executable", SITE, DOWN, Ran(failed=13), None, (False, 1007, -1003), "Permission denied"),
    ("the job's is not", JOBS, DOWN, Ran(failed=13), None, (True, 13, 13), "Permission denied"),
    ("garbage", SITE, DOWN, Ran(answer=None), 5, (False, 1007, -1004), "said nothing of use"),
    ("the job's garbage", JOBS, DOWN, Ran(answer=None), 5, (True, 13, errno.EPROTO), "nothing of use"),
    ("nothing of it", SITE, DOWN, Ran(answer=[]), 5, (False, 1007, -1004), "said nothing of it"),
    (
        "contradiction",
        SITE,
        DOWN,
        Ran(answer=[fine(success=False)]),
        5,
        (True, 13, errno.EIO),
        "says that it",
    ),
    ("no file", SITE, DOWN, Ran(answer=[fine()]), None, (True, 13, errno.ENOENT), "there is no such file"),
    ("half a file", SITE, DOWN, Ran(answer=[fine(total=9)]), 5, (True, 13, errno.EIO), "9 bytes, and 5"),
]


@pytest.mark.parametrize(
    ("plugin", "direction", "ran", "size", "expected", "words"),
    [c[1:] for c in CASES],
    ids=[c[0] for c in CASES],
)
def test_every_way_to_end(
    plugin: Plugin,
    direction: Direction,
    ran: Ran,
    size: int | None,
    expected: tuple[bool, int, int] | None,
    words: str,
) -> None:
    """Codes are HTCondor's; the sentence says what was moved, who failed and how, and no secret."""
    ending = ending_of(plugin, direction, [MOVE], ran, {MOVE.path: size})

    assert expected == codes(ending)
    if ending is not None:
        assert words in ending.reason
        assert "secret" not in ending.reason
        assert ending.reason.startswith(f"Transfer {'output' if direction.upload else 'input'} files failure")


def test_no_plugin() -> None:
    """A machine that lost its plugin is not the job's ending."""
    assert (False, 1007, -1001) == codes(nobody(DOWN, [MOVE]))


def test_the_first_plugin_that_knows_a_method_moves_all_of_its_files() -> None:
    """Each plugin is called once, with the files of all its methods; unknown methods are nobody's."""
    both = Plugin(path="both", methods=("a", "b"))
    late = Plugin(path="late", methods=("b", "c"))
    moves = [Move(f"{m}://x/{n}", f"/{n}") for n, m in enumerate("abacB")]

    found = [(p.path if p else None, [m.path for m in moved]) for p, moved in chosen([both, late], moves)]
    assert [("both", ["/0", "/2", "/1", "/4"]), ("late", ["/3"])] == found
    assert [(None, moves[:1])] == chosen([late], moves[:1])


def test_questions_are_read_as_they_were_written() -> None:
    """Whatever is in a name."""
    moves = [Move('foo://x/"q"\\', "/s/a b\n"), MOVE]
    assert moves == asked(question(moves))
    with pytest.raises(ProtocolError):
        asked("[ Url = 1 ]")


@pytest.mark.parametrize("text", ["", "\0\0", "  \n"])
def test_an_empty_answer_has_no_results(text: str) -> None:
    """Also one that fills its file with zeroes."""
    assert [] == answer(text)


def test_answers_as_htcondors_bindings_write_them() -> None:
    """
    Over several lines, with attributes that are of no use to us, one ad after the other without anything between.
    """
    text = """
    [
        TransferSuccess = true; TransferUrl = "foo://a"; TransferTotalBytes = 7;
        ConnectionTimeSeconds = 1.5E-02; TransferErrorData = { [ DeveloperData = [ x = 1 ] ] }
    ][ TransferSuccess = false; TransferError = "why"; TransferUrl = "foo://b" ]"""
    first, second = answer(text)
    assert (True, "foo://a", 7) == (first.success, first.url, first.total)
    assert (False, "why") == (second.success, second.error)


@pytest.mark.parametrize("text", ["garbage", "[ TransferSuccess = ", "[]]", "{"])
def test_an_answer_that_is_none(text: str) -> None:
    """Is refused as a whole."""
    with pytest.raises(ProtocolError):
        answer(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "PluginType"),
        ("hello", "no ad"),
        ('PluginType = "Other"\nSupportedMethods = "x"', "PluginType"),
        ('PluginType = "FileTransfer"', "SupportedMethods"),
    ],
)
def test_a_program_that_is_no_plugin(text: str, words: str) -> None:
    """Is known by what -classad prints."""
    with pytest.raises(ProtocolError, match=words):
        capabilities("p", text)
