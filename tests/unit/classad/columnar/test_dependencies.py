"""
Rows are told apart by everything that an expression looks at, however it gets there.

All rows differ in one attribute, which most expressions reach in some way: where a row was taken for like another
one, its value would be that one's.
"""

import pytest

from kettle.classad import ClassAd, EvaluationFailed, Value, interpret, parse, unparse
from kettle.classad.columnar import Evaluator, Table
from kettle_wire.ads import Ad, Expr, Scalar

WAYS = [
    "Serial",
    "MY.Serial",
    "TARGET.Serial",
    "Gap",  # in some rows only; the other ad has an expression over the rows
    "MY.Gap",
    "Derived",
    "TARGET.Derived",
    "Far",
    "Circle",
    ".Serial",
    ".Gap",
    "Nested.a",
    "Nested.b",
    "Nested.c",
    "TARGET.Nested.a",
    "TARGET.Nested.b",
    "Nested.parent.Serial",
    "[a = Serial].a",
    "[a = Gap].a",
    "[a = MY.Serial; Serial = 5].a",
    "[a = MY.Gap].a",
    "[a = TARGET.Serial].a",
    "[a = TARGET.Gap].a",
    "[a = Far].a",
    "[a = [b = Serial]].a.b",
    "[a = Derived][Named]",
    "{ Serial,Gap }[1]",
    "{ Gap,Derived }[0]",
    "Listed[0]",
    "Listed[1].a",
    'eval("Serial")',
    'eval("Gap + 1")',
    "eval(Named)",
    "eval(strcat(Ser, ial))",
    "evalInEachContext(Serial, { [x = 1],[Serial = 2] })[0]",
    "evalInEachContext(x + Serial, { [x = 1],[x = 2] })[1]",
    "evalInEachContext(Derived, { [Serial = 1] })[0]",
    "evalInEachContext(TARGET.Serial, { [x = 1] })[0]",
    "countMatches(Serial > x, { [x = 3],[x = 30] })",
    "countMatches(MY.Gap > x, { [x = 3],[x = 30] })",
    "unparse(Derived)",
    "unparse(Gap)",
    "unresolved(Derived)",
    "MY",
    "TARGET",
    "MY.Nested",
    "TARGET.parent.Serial",
    "Gap ?: Derived",
    "Flag ? Serial : Gap",
    "ifThenElse(Flag, Gap, Far)",
    "member(Serial, { 1,Gap,Derived })",
    "Ad.Serial",
    "Ad.a",
    "(Flag ? Nested : Ad).a",
]


def row(number: int) -> Ad:
    ad: dict[str, Scalar] = {
        "Serial": number,
        "Flag": number % 2 == 0,
        "Named": "a" if number % 5 else "Serial",
        "Derived": Expr("Serial * 2"),
        "Circle": Expr("Back ?: Serial"),
        "Nested": Expr(f"[ a = Serial; b = Gap; c = {number % 3} ]"),
        "Listed": Expr("{ Gap,[ a = Serial ] }"),
    }
    if number % 3:
        ad["Gap"] = number % 4 if number % 6 else Expr("Serial - 1")
    return ad


OTHER: Ad = {
    "Gap": Expr("TARGET.Serial + 100"),
    "Far": Expr("strcat(Serial, Derived)"),
    "Back": Expr("TARGET.Circle"),
    "Ad": Expr("[ a = Serial; Serial = TARGET.Gap ]"),
    "Ser": "Ser",
    "ial": "ial",
}


def shown(value: "Value | EvaluationFailed") -> str:
    return "EVAL_FAIL" if isinstance(value, EvaluationFailed) else unparse(value)


def interpreted(text: str, my: ClassAd, target: ClassAd | None) -> str:
    try:
        return shown(interpret(parse(text), my, target))
    except EvaluationFailed as failure:
        return shown(failure)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "form", ["{}", "strcat({})", "isList({{ {} }}[0])", "size(string({})) > 1", "{{ {} }}"]
)
def test_every_row_has_its_own_value(way: str, form: str) -> None:
    """
    From either side, with another ad and without, a row's value is what the interpreter finds for it alone.
    """
    ads = [row(number) for number in range(36)]
    table = Table()
    table.put_many((str(number), ad) for number, ad in enumerate(ads))
    text, other = form.format(way), ClassAd.from_wire(OTHER)
    alone = [ClassAd.from_wire(ad) for ad in ads]
    for asked, expected in (
        (Evaluator(table, my=other), [interpreted(text, other, ad) for ad in alone]),
        (Evaluator(table, target=other), [interpreted(text, ad, other) for ad in alone]),
        (Evaluator(table), [interpreted(text, ad, None) for ad in alone]),
    ):
        assert expected == [shown(value) for value in asked.values(parse(text))]
