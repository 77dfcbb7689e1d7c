"""Patterns: the engines agree, and none takes long."""

import contextlib
import re
import time

from hypothesis import given
from hypothesis import strategies as st

from kettle.classad.functions.pcre import TooCostly, compile_pattern

ATOMS = st.sampled_from(
    ["a", "b", ".", "[ab]", r"\w", r"\s", "[^a]", "^", "$", r"\b", "(?=a)", "(?!b)", r"\n", "é"]
)
REPEATS = st.sampled_from(["", "", "*", "+", "?", "{2}", "{1,3}", "*?", "{500}"])


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join),
        st.tuples(inner, REPEATS).map(lambda parts: f"({parts[0]}){parts[1]}"),
    )


PATTERNS = st.recursive(st.tuples(ATOMS, REPEATS).map("".join), _larger, max_leaves=6)


@given(pattern=PATTERNS, text=st.text(alphabet="ab \né", max_size=6))
def test_the_answer_is_that_of_re_or_an_error(pattern: str, text: str) -> None:
    """Which engine runs a pattern makes no difference to where it is found."""
    compiled = compile_pattern(pattern)
    if compiled is None or re.search(r"[*+?}]\)[*+?{]|\|.*\)[*+?{]|500", pattern):
        return  # `re` itself may not end
    try:
        found = compiled.search(text.encode())
    except TooCostly:
        return
    try:
        expected = re.search(pattern.encode(), text.encode())
    except re.error:
        return  # an assertion that is repeated: RE2 takes it for what it is
    assert (expected and expected.span()) == (found and (found.start, found.end))


@given(pattern=PATTERNS, length=st.sampled_from([0, 30, 300, 20_000]))
def test_every_pattern_ends(pattern: str, length: int) -> None:
    """Found, not found or refused: after a fraction of a second at most."""
    compiled = compile_pattern(pattern)
    began = time.process_time()
    if compiled is not None:
        with contextlib.suppress(TooCostly):
            compiled.search(b"a" * length + b"b")
    assert 0.25 > time.process_time() - began
