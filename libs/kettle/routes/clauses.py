"""Requirements, clause by clause, so that one that is not true can be named."""

from collections.abc import Sequence

import msgspec

from kettle.classad import (
    ClassAd,
    ClassAdError,
    Context,
    Exceptional,
    Node,
    conjuncts,
    evaluate,
    is_true,
    parse,
    references,
    unparse,
)


class Clause(msgspec.Struct, frozen=True):
    """One of the expressions that `&&` joins."""

    text: str
    node: Node
    names: tuple[str, ...]
    """The attributes that it looks at."""


def clauses_of(text: str) -> tuple[Clause, ...]:
    """The clauses of an expression, without `true`; raises ClassAdParseError."""
    return tuple(
        Clause(unparse(node), node, tuple(sorted(references(node).external)))
        for node in conjuncts(parse(text))
        if unparse(node).lower() != "true"
    )


def failing(clauses: Sequence[Clause], my: ClassAd, context: Context) -> str:
    """One sentence about the first clause that is not true of the ad; empty: all are."""
    for each in clauses:
        try:
            value = evaluate(each.node, my=my, context=context)
        except ClassAdError as error:
            return f"{each.text} has no value: {error}"
        if is_true(value):
            continue
        if value is False:  # most are
            return f"{each.text} is false"
        if value is Exceptional.UNDEFINED:
            missing = [name for name in each.names if name.lower() not in my.stored]
            if missing:
                return f"{each.text} is undefined: the job has no {' and no '.join(missing)}"
        return f"{each.text} is {unparse(value)}"
    return ""
