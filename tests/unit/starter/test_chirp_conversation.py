"""The chirp protocol as a conversation, without a socket."""

from collections.abc import Callable

import msgspec
import pytest

from kettle.execution.attempts.job_spec import ChirpPolicy
from kettle.execution.job_environment.job_ad import JobAd
from kettle_services.starter.chirp.conversation import Delayed, Dialogue
from kettle_services.starter.chirp.server import allowed
from kettle_services.starter.chirp.syntax import words
from kettle_services.starter.chirp.waits import (
    Asked,
    AskSubmitSide,
    HangUpError,
    Pause,
    ReadBytes,
    ReadLine,
    Wait,
    WaitForRoom,
)
from kettle_wire.ads import Ad, Expr
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.access import Exchanged, Opened, Output
from kettle_wire.commands.chirp import (
    Chirped,
    CloseFile,
    GetAttribute,
    Note,
    OnPath,
    OpenFile,
    ReadFile,
    SetAttribute,
    Trouble,
    WriteFile,
)
from kettle_wire.commands.questions import COMMAND, Command, Commanded, OnNode

EVERYTHING = ChirpPolicy(files=True, updates=True, delayed=("Chirp*",))
STAT = b"1 2 3 4 5 6 7 5 9 10 11 12 13\n"
Answer = Callable[[Asked], Chirped]


def nothing(_wish: Asked) -> Chirped:
    return Chirped()


def hold(
    said: bytes, *, answer: Answer = nothing, policy: ChirpPolicy = EVERYTHING
) -> tuple[bytes, list[Asked]]:
    """What is answered to what is said after the cookie, and what the submit side was asked."""
    heard, answers, asked = bytearray(b"cookie secret\n" + said), bytearray(), list[Asked]()
    dialogue = Dialogue(
        "secret", policy, Delayed(JobAd({"Own": Expr("1 + 1")}), policy.delayed), answers.extend
    )
    talk = dialogue.talk()
    wait: Wait = talk.send(None)
    while True:
        match wait:
            case ReadLine() if b"\n" in heard:
                line, _, rest = bytes(heard).partition(b"\n")
                heard[:] = rest
                wait = talk.send(line.decode())
            case ReadBytes(count=count) if len(heard) >= count:
                data = bytes(heard[:count])
                del heard[:count]
                wait = talk.send(data)
            case AskSubmitSide(wish=wish):
                asked.append(wish)
                wait = talk.send(answer(wish))
            case WaitForRoom() | Pause():
                wait = talk.send(None)
            case _:
                return bytes(answers).removeprefix(b"0\n"), asked


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ulog half\\ of\\ it", ["ulog", "half of it"]),
        ("a  b\tc", ["a", "b", "c"]),
        ("a\\\\b \\\n", ["a\\b", "\n"]),
        ("", []),
    ],
)
def test_words_are_told_apart_by_blanks_without_a_backslash(line: str, expected: list[str]) -> None:
    """A backslash makes a blank, or itself, a part of a word."""
    assert expected == words(line)


def test_without_the_cookie_nothing_is_heard() -> None:
    """One wrong word, and the talk is over."""
    said = bytearray()
    talk = Dialogue("secret", EVERYTHING, Delayed(JobAd({}), ()), said.extend).talk()
    talk.send(None)
    with pytest.raises(StopIteration):
        talk.send("cookie guess")
    assert b"-1\n" == said


def test_the_job_reads_and_sets_its_ad_and_writes_into_its_log() -> None:
    """Each is one wish to the submit side."""
    answered, asked = hold(
        b'get_job_attr Owner\nset_job_attr Stage "second\\ one"\nulog half\n',
        answer=lambda wish: Chirped(5, b'"ann"') if isinstance(wish, GetAttribute) else Chirped(),
    )

    assert b'5\n"ann"0\n0\n' == answered
    assert [GetAttribute("Owner"), SetAttribute("Stage", '"second one"'), Note("half")] == asked


def test_what_is_set_without_hurry_stays_here() -> None:
    """Under names that the machine allows, as expressions; others are refused, and nobody is asked."""
    answered, asked = hold(
        b"set_job_attr_delayed ChirpDone 0.5\nget_job_attr_delayed chirpdone\nget_job_attr_delayed Own\n"
        b"set_job_attr_delayed Done 1\nset_job_attr_delayed ChirpX (\nget_job_attr_delayed None\n"
        b"set_job_attr_delayed ChirpX " + b"1" * 1000 + b"\n"
    )

    assert b"0\n3\n0.55\n1 + 1-2\n-8\n-3\n-5\n" == answered
    assert [] == asked


def test_a_job_that_has_not_asked_for_more_may_do_no_more() -> None:
    """Without WantIOProxy files, log and ad are no requests at all."""
    policy = allowed(EVERYTHING, JobAd({}))
    answered, asked = hold(
        b"get_job_attr Owner\nulog hi\nunlink x\nset_job_attr_delayed ChirpX 1\n", policy=policy
    )

    assert b"-8\n-8\n-8\n0\n" == answered
    assert [] == asked
    assert EVERYTHING == allowed(EVERYTHING, JobAd({"WantIOProxy": True}))


IN_POOL = ChirpPolicy(commands=True)


def test_a_job_commands_its_pool() -> None:
    """The request travels as it is, and so does the answer."""
    answered, asked = hold(
        b"kettle schedd my\\ schedd act 3\n\x00\n\xffkettle accounting a query_history 0\n",
        answer=lambda _: Chirped(2, b"\n\x01"),
        policy=IN_POOL,
    )

    assert b"2\n\n\x012\n\n\x01" == answered
    assert [
        Command(role="schedd", name="my schedd", verb="act", body=b"\x00\n\xff"),
        Command(role="accounting", name="a", verb="query_history", body=b""),
    ] == asked


@pytest.mark.parametrize(
    "line", [b"kettle negotiator n why 0\n", b"kettle schedd s act\n", b"kettle schedd s act -1\n"]
)
def test_what_is_no_command_is_not_passed_on(line: bytes) -> None:
    """Another role, a word too few, no length."""
    assert (b"-8\n", []) == hold(line, policy=IN_POOL)


def test_a_command_that_is_too_long_is_not_taken_in() -> None:
    """The connection ends: what follows is its body."""
    with pytest.raises(HangUpError):
        hold(b"kettle schedd s submit %d\n" % (COMMAND + 1), policy=IN_POOL)


def test_who_did_not_ask_for_the_pool_does_not_command_it() -> None:
    """Neither the machine's word nor the job's is enough."""
    cases: list[tuple[ChirpPolicy, Ad]] = [
        (IN_POOL, {}),
        (IN_POOL, {"WantPoolAccess": Expr("true")}),
        (EVERYTHING, {"WantPoolAccess": True}),
    ]
    for policy, ad in cases:
        line = b"kettle schedd s act 0\n"
        assert (b"-8\n", []) == hold(line, policy=allowed(policy, JobAd(ad)))
    assert IN_POOL == allowed(IN_POOL, JobAd({"WantPoolAccess": True}))


def test_a_member_of_a_session_speaks_with_that_alone() -> None:
    """
    Where the machine's owner lets jobs command nothing, one of a session says what its session needs; where he has all this off,
    not even that.
    """
    member = JobAd({"KettleSessionId": "0123456789ab", "WantPoolAccess": True})
    policy = allowed(ChirpPolicy(sessions=True), member)
    assert [Command(role="sessions", name="-", verb="show", body=b"")] == hold(
        b"kettle sessions - show 0\n", policy=policy
    )[1]
    assert (b"-8\n", []) == hold(b"kettle schedd s act 0\n", policy=policy)
    assert ChirpPolicy() == allowed(ChirpPolicy(), member)
    assert ChirpPolicy() == allowed(ChirpPolicy(sessions=True), JobAd({}))


def test_a_file_is_fetched_in_pieces() -> None:
    """Its length comes first, then its bytes; it is closed afterwards."""

    def answer(wish: Asked) -> Chirped:
        match wish:
            case OpenFile():
                return Chirped(3, STAT)
            case ReadFile(length=length):
                return Chirped(2, b"ab") if length > 1 else Chirped(1, b"c")
            case _:
                return Chirped()

    answered, asked = hold(b"getfile a\\ b\n", answer=answer)
    assert b"5\nababc" == answered
    assert [OpenFile("a b", "r"), ReadFile(3, 5), ReadFile(3, 3), ReadFile(3, 1), CloseFile(3)] == asked


def test_a_file_that_became_shorter_ends_the_connection() -> None:
    """Its length is said already: nothing else could tell the reader."""
    with pytest.raises(HangUpError):
        hold(
            b"getfile a\n", answer=lambda wish: Chirped(3, STAT) if isinstance(wish, OpenFile) else Chirped()
        )


def test_a_file_is_put_there() -> None:
    """Two answers, as the protocol has it: it can be written, and so much was."""

    def answer(wish: Asked) -> Chirped:
        match wish:
            case OpenFile():
                return Chirped(4, STAT)
            case WriteFile(data=data):
                return Chirped(len(data))
            case _:
                return Chirped()

    answered, asked = hold(b"putfile out 420 5\nhello", answer=answer)
    assert b"4\n5\n" == answered
    assert [OpenFile("out", "wct", 0o644), WriteFile(4, b"hello"), CloseFile(4)] == asked


def test_what_is_announced_is_read_though_it_cannot_be_written() -> None:
    """Else the bytes would be taken for requests."""
    answered, asked = hold(b"write 3 4\nrm *unlink x\n", answer=lambda _: Chirped(Trouble.NO_SPACE))

    assert b"-6\n-6\n" == answered
    assert [WriteFile(3, b"rm *"), OnPath("unlink", ["x"])] == asked


@pytest.mark.parametrize(
    "line",
    [
        b"open a r",
        b"read x 5",
        b"read 3 -5",
        b"lseek 3 0 7",
        b"unlink",
        b"getdir a b",
        b"nonsense",
        b"",
        b"chmod a b",
    ],
)
def test_what_makes_no_sense_is_refused(line: bytes) -> None:
    """And the next request is heard."""
    answered, asked = hold(line + b"\nunlink x\n")

    assert b"-8\n0\n" == answered
    assert [OnPath("unlink", ["x"])] == asked


def test_a_node_runs_a_command_on_another() -> None:
    """
    What has not begun, or is not reached, is asked again; then its output comes line by line, and how it ended.
    """
    answers = iter([
        Commanded(code=RefusalCode.NOT_RUNNING, reason="it has not begun"),
        Trouble.OFFLINE,
        Commanded(body=msgspec.msgpack.encode(Opened(pid=7))),
        Commanded(body=msgspec.msgpack.encode(Exchanged(number=1, output=[Output(1, b"a b\n"), Output(2, b"%")]))),
        Commanded(body=msgspec.msgpack.encode(Exchanged(number=2, over=True, exit_signal=9))),
    ])  # fmt: skip

    def answer(_asked: Asked) -> Chirped:
        said = next(answers)
        if isinstance(said, Trouble):
            return Chirped(said)
        data = msgspec.msgpack.encode(said)
        return Chirped(len(data), data)

    policy = allowed(ChirpPolicy(nodes=True), JobAd({"Node": 0}))
    answered, asked = hold(b"kettle_node 3 4\ndate", answer=answer, policy=policy)
    assert b"0\nout a\\0040b\\0012\nerr \\0045\nexit 137\n" == answered
    said = [each for each in asked if isinstance(each, OnNode)]
    assert [3] * 5 == [each.node for each in said]
    assert ["open_session"] * 3 + ["exchange"] * 2 == [each.verb for each in said]
    assert ["/bin/sh", "-c", "date"] == said[0].command
    assert [0, 1] == [each.after for each in said[3:]]


def test_what_a_node_may_not_or_cannot_do_it_is_told() -> None:
    """A job of no nodes knows no such request; a command with a NUL is none."""
    assert b"-8\n-8\n" == hold(b"kettle_node 1 0\n\n", policy=allowed(ChirpPolicy(nodes=True), JobAd({})))[0]
    answered, asked = hold(b"kettle_node 1 1\n\0", policy=ChirpPolicy(nodes=True))
    assert (b"-8\n", []) == (answered, asked)
