"""Addresses that a starter asks for, and what it makes of the answers."""

from pathlib import Path
from typing import Literal, cast

import pytest

from kettle.execution.attempts.job_spec import JobSpec
from kettle.execution.attempts.messages import Question, Reply, Unanswered
from kettle.execution.job_environment.job_ad import JobAd
from kettle.transfer.plugin import Move, Plugin, chosen
from kettle.transfer.plugins import own_plugins
from kettle.transfer.url_cache import cacheable
from kettle_services.starter.file_transfer import signed_urls
from kettle_services.starter.file_transfer.plugin_process import TransferError
from kettle_services.starter.file_transfer.signed_urls import Signing
from kettle_services.starter.submit_side_questions import SubmitSideQuestions
from kettle_wire.commands.questions import SignedUrls, SignUrls
from kettle_wire.commands.startd import ClaimKey
from kettle_wire.jobs import JobId


class Line:
    """Keeps what is asked."""

    def __init__(self) -> None:
        self.said: list[Question] = []
        self.questions = SubmitSideQuestions("shadow", self.said.append)


def spec(plugins: list[Plugin]) -> JobSpec:
    return JobSpec(
        key=ClaimKey("c", "s"), job=JobId(1, 0), attempt=1, schedd="schedd", shadow="shadow", execute="/x", state="/y",
        slot="slot1", cpus=1, memory=1, disk=1, ad={}, machine_ad="", inputs=[], received=0, began=0.0, deadline=0.0,
        sequence=0, plugins=plugins,
    )  # fmt: skip


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Line:
    monkeypatch.setattr(signed_urls, "_AT_ONCE", 2)
    return Line()


OURS = own_plugins(("https", "s3"))
MOVES = [Move(f"s3://b/{n}", f"/sandbox/{n}") for n in range(3)] + [Move("https://h/f", "/sandbox/f")]


def asked(wish: Signing, line: Line) -> tuple[int, list[str]]:
    wish.say()
    return line.said[-1].number, cast("SignUrls", line.said[-1].asks).urls


def test_addresses_are_asked_for_in_portions(line: Line) -> None:
    """As many as fit into a message, until there are all; what needs none stays as it is."""
    wish = Signing(spec(OURS), JobAd({}), line.questions, MOVES, upload=False)
    while not wish.done:
        number, urls = asked(wish, line)
        wish.hear(Reply(number, SignedUrls([f"{url}?signed" for url in urls])))

    assert [["s3://b/0", "s3://b/1"], ["s3://b/2"]] == [
        cast("SignUrls", question.asks).urls for question in line.said
    ]
    assert ["s3://b/0?signed", "s3://b/1?signed", "s3://b/2?signed", "https://h/f"] == [
        move.url for move in wish.moves()
    ]
    assert [move.path for move in MOVES] == [move.path for move in wish.moves()]


def test_an_answer_to_an_earlier_question_does_not_count(line: Line) -> None:
    """A question that is said again may be answered twice."""
    wish = Signing(spec(OURS), JobAd({}), line.questions, MOVES, upload=True)
    first, _ = asked(wish, line)
    answer = Reply(first, SignedUrls(["x", "y"]))
    wish.hear(answer)
    wish.hear(answer)

    assert not wish.done
    assert ["s3://b/2"] == asked(wish, line)[1]


@pytest.mark.parametrize(("upload", "code"), [(False, 13), (True, 12)])
def test_a_refusal_holds_the_job(line: Line, upload: bool, code: int) -> None:
    """With the reason, the object and the system's error."""
    wish = Signing(spec(OURS), JobAd({}), line.questions, MOVES, upload=upload)
    wish.hear(Reply(asked(wish, line)[0], SignedUrls([], "the key is gone", 2)))

    assert wish.done
    with pytest.raises(TransferError, match="s3://b/0: the key is gone") as caught:
        wish.moves()
    ending = caught.value.ending
    assert (True, code, 2) == (ending.holds, ending.code, ending.subcode)


@pytest.mark.parametrize(("why", "done"), [("refused", True), ("later", False), ("offline", False)])
def test_what_may_change_is_asked_again(
    line: Line, monkeypatch: pytest.MonkeyPatch, why: Literal["refused", "later", "offline"], done: bool
) -> None:
    """
    Given a shadow that does not answer, when its time has come, then the same is asked under the same number, unless the
    answer is no.
    """
    monkeypatch.setattr(signed_urls, "_REPEAT_S", 0.0)
    wish = Signing(spec(OURS), JobAd({}), line.questions, MOVES, upload=False)
    number, urls = asked(wish, line)
    wish.hear(Reply(number, Unanswered(why, "because")))

    assert done == wish.done
    if not done:
        assert (number, urls) == asked(wish, line)
        wish.hear(Reply(number, SignedUrls(["x", "y"])))
        assert ["s3://b/2"] == asked(wish, line)[1]


@pytest.mark.parametrize("whose", ["machine", "job"])
def test_who_has_a_plugin_has_a_key(tmp_path: Path, line: Line, whose: str) -> None:
    """A program of the machine's owner, or of the job, gets the URLs as they are."""
    other = [Plugin(path=str(tmp_path), methods=("s3",))] if whose == "machine" else []
    ad = JobAd({"TransferPlugins": "s3 = plugin"} if whose == "job" else {})
    wish = Signing(spec([*other, *OURS]), ad, line.questions, MOVES, upload=False)

    assert wish.done
    assert wish.moves() == MOVES


def test_a_signed_address_goes_to_nobody_elses_program(line: Line) -> None:
    """
    Given a machine whose owner has a program for https, then that gets its own URLs, and none with a signature in it; what is kept
    for the next job is known by the name that the job has for it, in which there is no signature.
    """
    site = Plugin(path="/site/curl", methods=("https",), several=False)
    plugins = [site, *own_plugins(("s3",))]
    wish = Signing(spec(plugins), JobAd({}), line.questions, MOVES, upload=False)
    while not wish.done:
        number, urls = asked(wish, line)
        wish.hear(
            Reply(number, SignedUrls([url.replace("s3://", "https://") + "?signature" for url in urls]))
        )
    found = {plugin.path if plugin else "": moves for plugin, moves in chosen(plugins, wish.moves())}

    assert {"/site/curl", "kettle.transfer.plugins.http"} == set(found)
    assert ["https://h/f"] == [move.url for move in found["/site/curl"]]
    kept = cacheable(wish.moves(), own_plugins(("https", "s3")))
    assert {move.url for move in MOVES} == {move.named for move in kept}
    assert all("signature" not in move.named for move in kept)
    assert [] == cacheable(wish.moves(), [site, *own_plugins(("file",))])
