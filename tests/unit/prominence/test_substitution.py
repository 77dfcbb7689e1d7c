import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.prominence.substitution import leads_outside, substituted, substituted_url

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$x", "1"),
        ("${x}", "1"),
        ("a$x/b", "a1/b"),
        ("${x}_2", "1_2"),
        ("$x_2", "$x_2"),
        ("$xy", "$xy"),
        ("$x$x", "11"),
        ("$$x", "$1"),
        ("${x", "${x"),
        ("$", "$"),
        ("$HOME ${y}", "$HOME $x"),
    ],
)
def test_a_parameter_is_named_as_a_whole(text: str, expected: str) -> None:
    """A longer name is another one, what is none stays, and values are not looked at again."""
    assert expected == substituted(text, {"x": "1", "y": "$x"})


@given(TEXTS, TEXTS)
def test_values_are_never_looked_at_again(first: str, second: str) -> None:
    """Whatever stands in a value comes out as it is."""
    assert f"<{first}|{second}>" == substituted("<$a|${b}>", {"a": first, "b": second})


def test_values_in_urls_are_encoded_where_they_must_be() -> None:
    """
    A whole URL may be a value; blanks and quotes in it are encoded, and what stands in the document is not touched.
    """
    assert "http://h/a%20b%22.dat?x=$y" == substituted_url("http://h/$n.dat?x=$y", {"n": 'a b"'})
    assert "http://h/p?q=1&r=%20#f" == substituted_url("$url", {"url": "http://h/p?q=1&r=%20#f"})


@pytest.mark.parametrize("path", ["/a", "..", "a/../b", "../a", "a/..", "", "/"])
def test_what_leads_out_of_a_directory_is_seen(path: str) -> None:
    """Absolute, upwards, or nothing at all."""
    assert leads_outside(path)
    assert not leads_outside("a..b/c")
