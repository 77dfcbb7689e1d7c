"""ClassAd and ExprTree do what HTCondor's do: the same calls are made on both."""

import copy
import datetime as dt
import io
import pickle
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.bindings import ad_parsing, ads, errors, expressions, values

from . import oracle

OURS = SimpleNamespace(
    ClassAd=ads.ClassAd,
    ExprTree=expressions.ExprTree,
    Value=values.Value,
    ParserType=ad_parsing.ParserType,
    parseAds=ad_parsing.parseAds,
    parseNext=ad_parsing.parseNext,
    parseOne=ad_parsing.parseOne,
    quote=expressions.quote,
    unquote=expressions.unquote,
)
FULL = {"a": 1, "B": "x", "d": [1, 2], "e": {"q": 3}, "f": None, "g": 2.5, "h": True}


def seen(value: Any) -> Any:
    """What can be compared of a result: numbers and texts, and how ads and expressions are written."""
    kind = type(value).__name__
    if kind in {"ClassAd", "ExprTree"}:
        return kind, repr(value), str(value)
    if kind == "Value":
        return kind, value.name
    if kind in {"list", "tuple"}:
        return [seen(item) for item in value]
    return kind, value


def outcome(call: Callable[[Any], Any], module: Any) -> Any:
    try:
        return seen(call(module))
    except Exception as error:  # noqa: BLE001 - which one is what is compared
        return type(error).__mro__[-3].__name__ if isinstance(error, KeyError) else "raised"


def full(m: Any) -> Any:
    ad = m.ClassAd(FULL)
    ad["c"] = m.ExprTree("a + 1")
    return ad


def changed(m: Any) -> Any:
    ad = full(m)
    return [ad.pop("a"), ad.setdefault("b", 2), ad.update({"Z": 1}), ad]


SAME: dict[str, Callable[[Any], Any]] = {
    "str": lambda m: str(full(m)),
    "repr": lambda m: repr(full(m)),
    "items": lambda m: list(full(m).items()),
    "old form": lambda m: full(m).printOld(),
    "old form of nothing": lambda m: m.ClassAd().printOld(),
    "json": lambda m: full(m).printJson(),
    "json of nothing": lambda m: m.ClassAd({"a": [], "b": {}}).formatJson(),
    "case": lambda m: [full(m)["b"], "A" in full(m), full(m).get("H")],
    "missing": lambda m: full(m)["nope"],
    "missing, evaluated": lambda m: full(m).eval("nope"),
    "missing, looked up": lambda m: full(m).lookup("nope"),
    "default": lambda m: full(m).get("nope", 3),
    "evaluated": lambda m: [full(m).eval(name) for name in full(m)],
    "looked up": lambda m: [full(m).lookup(name) for name in full(m)],
    "no number as a name": lambda m: m.ClassAd({})[3],
    "expression without its ad": lambda m: full(m)["c"].eval(),
    "expression in its ad": lambda m: full(m)["c"].eval(full(m)),
    "a target": lambda m: m.ExprTree("MY.a + TARGET.a").eval(full(m), full(m)),
    "simplified": lambda m: [m.ExprTree("a+1+2").simplify(full(m)), m.ExprTree("a+z").simplify(full(m))],
    "flattened": lambda m: [full(m).flatten(m.ExprTree(text)) for text in ("a + z", "a + 1", '"x"')],
    "references": lambda m: [
        sorted(full(m).externalRefs(m.ExprTree("a+zz+TARGET.y"))),
        full(m).internalRefs(m.ExprTree("a+zz+TARGET.y")),
    ],
    "matches": lambda m: [
        m.ClassAd("[x=2]").matches(m.ClassAd("[requirements=TARGET.x>1]")),
        m.ClassAd("[requirements=TARGET.x>1]").matches(m.ClassAd("[x=2]")),
    ],
    "both match": lambda m: [
        m.ClassAd(f"[x=2;requirements={value}]").symmetricMatch(m.ClassAd("[requirements=TARGET.x>1]"))
        for value in ("true", "false")
    ],
    "equal": lambda m: [
        m.ClassAd("[a=1]") == m.ClassAd("[A=1]"),
        full(m) == m.ClassAd(str(full(m))),
        m.ClassAd("[a=1]") == {"a": 1},
        m.ExprTree("a+1") == m.ExprTree("a + 1"),
        m.ExprTree("1") == 1,
    ],
    "no ad": lambda m: m.ClassAd("[a=1"),
    "no ad in lines": lambda m: m.ClassAd("a=1"),
    "no mapping": lambda m: m.ClassAd(3),
    "no expression": lambda m: m.ExprTree("1 +"),
    "two expressions": lambda m: m.ExprTree("1 2"),
    "expressions of values": lambda m: [m.ExprTree(), m.ExprTree(3), m.ExprTree(True), m.ExprTree(2.5)],
    "times": lambda m: m.ClassAd({"a": dt.datetime(2020, 1, 1, tzinfo=dt.UTC)})["a"],
    "a time of another zone": lambda m: m.ClassAd('[a=absTime("2020-01-01T00:00:00+02:00")]')["a"],
    "a duration": lambda m: m.ClassAd('[a=relTime("1:00")]').eval("a"),
    "what is none": lambda m: [m.ClassAd({"a": m.Value.Undefined, "b": m.Value.Error}), m.Value.Error],
    "lists": lambda m: [m.ClassAd("[a={1,x};x=2]").eval("a"), m.ClassAd({"a": (1, "x")})["a"]],
    "an ad in an ad": lambda m: [m.ClassAd("[a=[b=c];c=2]")["a"], m.ClassAd("[a=[b=c];c=2]")["a"]["b"]],
    "no value": lambda m: m.ClassAd({"a": object()}),
    "too large": lambda m: m.ClassAd({"a": 1 << 63}),
    "octets": lambda m: m.ClassAd({"a": "é", "b": b"x"}),
    "changed": changed,
    "pickled": lambda m: pickle.loads(pickle.dumps(full(m))),
    "copied": lambda m: [copy.copy(full(m)), copy.deepcopy(full(m))],
    "quoted": lambda m: [m.quote('a"b\\c\n'), m.unquote('"a\\"b"'), m.unquote('"a" "b"')],
    "no string": lambda m: m.unquote("abc"),
    "a number, no string": lambda m: m.unquote("3"),
    "all as one": lambda m: m.parseOne("a=1\nb=2\n\na=3\nc=2"),
    "nothing as one": lambda m: m.parseOne(""),
    "ads in lines": lambda m: list(m.parseAds("a=1\n\na=2\n")),
    "ads in brackets": lambda m: list(m.parseAds("[a=1] [a=2]")),
    "ads of a file": lambda m: list(m.parseAds(io.StringIO("a=1\n\na=2\n"))),
    "a bad line": lambda m: list(m.parseAds("a=1\nb=\n\nc=1")),
    "xml": lambda m: list(m.parseAds('<classads><c><a n="x"><i>1</i></a></c></classads>', m.ParserType.XML)),
    "json read": lambda m: list(m.parseAds('{"a":1}', m.ParserType.JSON)),
    "not the new form": lambda m: list(m.parseAds("a=1", m.ParserType.New)),
    "the next one": lambda m: [m.parseNext("a=1\n\na=2\n"), m.parseNext("")],
}


@oracle.needed
@pytest.mark.parametrize("call", SAME.values(), ids=SAME.keys())
def test_a_call_has_the_outcome_that_it_has_in_htcondor(call: Callable[[Any], Any]) -> None:
    assert outcome(call, oracle.module("classad2")) == outcome(call, OURS)


LITERALS = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.text(st.characters(min_codepoint=1, max_codepoint=0xD7FF), max_size=8),
)
TREES = st.recursive(
    LITERALS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.from_regex(r"[a-z]{1,4}_", fullmatch=True), inner, max_size=3)
    ),
    max_leaves=6,
)


@oracle.needed
@given(st.dictionaries(st.from_regex(r"[A-Za-z]{1,5}_", fullmatch=True), TREES, max_size=4))
def test_values_are_stored_written_and_given_back_as_in_htcondor(attributes: dict[str, Any]) -> None:
    """An underscore makes no name a reserved word."""
    theirs, ours = oracle.module("classad2").ClassAd(attributes), ads.ClassAd(attributes)
    assert seen(theirs) == seen(ours)
    assert seen(list(theirs.items())) == seen(list(ours.items()))
    assert theirs.printJson() == ours.printJson()


def test_a_file_is_read_ad_by_ad(tmp_path: Any) -> None:
    """
    Whatever the form, the next call goes on behind the ad before; also where characters take several octets.
    """
    texts = {
        "old": 'a = 1\nname = "é"\n\na = 2\n',
        "new": '[ a = 1; name = "é" ]\n[ a = 2 ]\n',
        "json": '[\n{"a": 1, "name": "é"},\n{"a": 2}\n]\n',
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.write_text(text)
        for mode in ("r", "rb"):
            with path.open(mode) as file:
                found = [ad_parsing.parseNext(file), ad_parsing.parseNext(file), ad_parsing.parseNext(file)]
            assert [1, 2, None] == [ad and ad["a"] for ad in found], (name, mode)


def test_the_last_error_can_be_asked_for() -> None:
    """A program that caught an exception elsewhere learns what was wrong."""
    with pytest.raises(errors.ClassAdException):
        expressions.ExprTree("foo (")
    assert "line 1, column 6" in errors.lastError()


def test_a_literal_duration_is_a_number() -> None:
    """As the reference gives it: its value is the number of seconds."""
    assert ads.ClassAd('[a = relTime("1:05")]')["a"] == 65.0


def test_what_cannot_be_an_ad_is_told_in_words() -> None:
    with pytest.raises(errors.ClassAdException, match="line 1, column 4"):
        ads.ClassAd("[a=")
    with pytest.raises(errors.ClassAdException, match="object"):
        ads.ClassAd()["a"] = object()
    with pytest.raises(OverflowError, match="64 bits"):
        ads.ClassAd({"a": 1 << 63})


def test_a_time_keeps_its_instant_whatever_its_zone() -> None:
    """HTCondor takes the hands of the clock for those of UTC; that is not repeated."""
    zone = dt.timezone(dt.timedelta(hours=2))
    noon = dt.datetime(2020, 1, 1, 12, tzinfo=zone)
    assert noon == ads.ClassAd({"a": noon})["a"]
