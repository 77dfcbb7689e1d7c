"""Version 1 of the ClassAd module: expressions with operators, which know their ad."""

import pytest

from kettle.bindings import classad_v1 as classad
from kettle.bindings.errors import ClassAdEvaluationError, ClassAdParseError, NotCarriedOutError
from kettle.bindings.values import Value


def test_operators_make_expressions() -> None:
    a, three = classad.Attribute("a"), classad.Literal(3)
    made = [a + 1, 1 + a, (a + 1) * 2, a < three, a.and_(three), a.is_(None), -a, a == 3, a["x"]]
    assert [
        "a + 1", "1 + a", "(a + 1) * 2", "a < 3", "a && 3", "a is undefined", "-a", "a == 3", 'a["x"]',
    ] == [repr(each).strip() for each in made]  # fmt: skip
    assert 'strcat("x",a)' == repr(classad.Function("strcat", "x", a))
    assert (a + 1).sameAs(classad.ExprTree("a+1"))


def test_expressions_of_an_ad_are_evaluated_in_it() -> None:
    ad = classad.ClassAd({"a": 1, "b": classad.ExprTree("a + 1"), "c": {"d": classad.ExprTree("1")}})
    assert (2, 2, 2.0, True) == (ad["b"].eval(), int(ad["b"]), float(ad["b"]), bool(ad["b"]))
    assert 3 == (ad["b"] + 1).eval()
    assert isinstance(ad["c"], classad.ClassAd)
    assert ad.get("b") == 2


def test_what_has_no_truth_is_refused() -> None:
    with pytest.raises(ClassAdEvaluationError, match="undefined"):
        bool(classad.ExprTree("nothing"))
    with pytest.raises(ClassAdEvaluationError):
        int(classad.ExprTree("error"))
    assert classad.ExprTree("nothing").eval() is Value.Undefined


def test_texts_of_both_forms() -> None:
    assert classad.parse("[a = 1]") == classad.parseOld("a = 1") == classad.parseOne("a = 1")
    assert [1, 2] == [ad["a"] for ad in classad.parseAds("[a=1][a=2]")]
    with pytest.raises(SyntaxError, match="Unable to parse"):
        classad.parse("a = 1")
    with pytest.raises(ClassAdParseError):
        classad.ExprTree("1 +")


def test_functions_cannot_be_added() -> None:
    with pytest.raises(NotCarriedOutError, match="the pool's"):
        classad.register(len, "size_of")
