# distributed has no types:
# pyright: reportGeneralTypeIssues=false, reportArgumentType=false

from typing import Any

import msgspec
import pytest

from kettle.dask.description import html_of, read_wish, said_of
from kettle.dask.session_service import Limits, Situation, Wish

NOW = Situation(
    id="s1",
    name="dask-1",
    state="queued",
    reason="3 sessions are before it",
    summary="wanted 4, running 0",
    wanted=4,
)


def wish(n: int | None = None, **words: Any) -> Wish:
    return read_wish(n, **{"name": "", "minimum": None, "maximum": None, **words})


def test_a_wish_has_the_units_of_the_service() -> None:
    """Sizes and times in words of Dask become MiB and seconds."""
    asked = wish(4, memory="4 GiB", life="2 hours", idle=600, share="alice", cores=2)
    assert (4, 4096, 7200.0, 600.0, ["alice"], 2) == (
        asked.workers, asked.memory_mib, asked.life_s, asked.idle_s, list(asked.share), asked.cores,
    )  # fmt: skip
    assert Limits(0, 8) == wish(maximum=8).adapt
    assert Wish() == msgspec.structs.replace(wish(), share=())


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        ({"wokers_": 3}, TypeError, "a cluster has no 'wokers_'"),
        ({"n": -1}, ValueError, "n cannot be -1"),
        ({"n": 2.5}, TypeError, "n is a whole number"),
        ({"minimum": 3}, ValueError, "needs a maximum"),
        ({"minimum": 3, "maximum": 2}, ValueError, "at least 3 and at most 2"),
        ({"cores": True}, TypeError, "cores is a whole number"),
    ],
)
def test_what_is_not_to_be_had(words: dict[str, Any], error: type[Exception], said: str) -> None:
    """It is refused before anything is asked of the pool."""
    with pytest.raises(error, match=said):
        wish(**words)


def test_why_a_cluster_is_as_it_is() -> None:
    """Its state with the reason, and that nobody answers, with what was known last."""
    assert "" == said_of(None, "")
    assert "queued: 3 sessions are before it; wanted 4, running 0" == said_of(NOW, "")
    assert "The pool does not answer (no bus)" in said_of(NOW, "no bus")
    assert "Last known: queued" in said_of(NOW, "no bus")


def test_nothing_of_a_session_is_markup() -> None:
    """A name or a reason cannot bring a script into a notebook."""
    evil = msgspec.structs.replace(NOW, reason="<script>alert(1)</script>")
    page = html_of("<b>", evil, "", {}, ['https://x/"><script>'])
    assert "<script" not in page
    assert "0 of 4" in page
