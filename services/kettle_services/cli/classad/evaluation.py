"""`kettle classad eval`: expressions and their values, one by one or a line each."""

import argparse
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final, TypeAlias

from kettle.classad import (
    UNDEFINED,
    ClassAd,
    ClassAdParseError,
    Context,
    EvaluationFailed,
    Exceptional,
    Node,
    Value,
    evaluate,
    interpret,
    parse,
    unparse,
    write_json,
)
from kettle.classad.nodes import Literal
from kettle_services.cli.classad.sources import ad_of_file, context, lines_of_input, refusal
from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.output.screen import Screen

Engine: TypeAlias = Callable[[Node, ClassAd, ClassAd | None, Context], Value]
Case: TypeAlias = tuple[str, str, str]

GAVE_UP: Final = 3
"""Exit status where an evaluation has no value."""

_ADS_KEPT: Final = 256
_COLUMNS: Final = 3


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Evaluate what was typed, or what comes in."""
    _check(arguments)
    engine = _engine(arguments.engine)
    if arguments.batch:
        lines = lines_of_input()
        cases = _cases(lines) if arguments.tsv else (("", "", line) for line in lines)
        for outcome in outcomes(cases, engine):
            screen.say(outcome)
        return 0
    return _one(arguments, screen, engine)


def _check(arguments: argparse.Namespace) -> None:
    single = [name for name in ("my", "target", "explain", "json") if getattr(arguments, name)]
    if arguments.batch and (single or arguments.expression is not None):
        raise UsageError(f"--batch does not go with {f'--{single[0]}' if single else 'an expression'}")
    if arguments.tsv and not arguments.batch:
        raise UsageError("--tsv only goes with --batch")
    if arguments.explain and arguments.json:
        raise UsageError("--explain is for people, --json for programs; choose one")
    if not arguments.batch and arguments.expression is None:
        raise UsageError("give an expression, or --batch to read them from standard input")
    if arguments.my == arguments.target == "-":
        raise UsageError("standard input can be only one of the two ads")


# -- one expression ----------------------------------------------------------------------------------------------------


def _one(arguments: argparse.Namespace, screen: Screen, engine: Engine) -> int:
    try:
        node = parse(arguments.expression)
    except ClassAdParseError as error:
        raise CommandError(refusal(error, "the expression")) from error
    my = ad_of_file(arguments.my) if arguments.my else ClassAd()
    target = ad_of_file(arguments.target) if arguments.target else None
    world = context(trace=screen.note)
    try:
        value = engine(node, my, target, world)
    except EvaluationFailed as failure:
        screen.trouble(f"kettle classad: the evaluation was given up: {failure}")
        return GAVE_UP
    if screen.as_json:
        screen.say(_json(value))
        return 0
    screen.say(screen.paint(unparse(value), _style(value)))
    if arguments.explain or (screen.terminal and isinstance(value, Exceptional)):
        for sentence in _reasons(value, node, my, target, screen.width):
            screen.say(screen.paint(f"  {sentence}", "dim"))
    return 0


def _reasons(value: Value, node: Node, my: ClassAd, target: ClassAd | None, width: int) -> Iterator[str]:
    """Where an undefined or an error comes from; which clauses of a condition are false, and what of."""
    from kettle_services.cli.classad.clauses import annotated, clauses, operands
    from kettle_services.cli.classad.error_origins import Side, origins

    left, right = Side(my, "MY"), None if target is None else Side(target, "TARGET")
    world = context()
    if isinstance(value, Exceptional):
        yield from origins(node, left, right, world)
    elif value is False:
        for _, clause in clauses("", node, my):
            if not isinstance(clause, Literal) and _is_false(clause, my, target, world):
                given = operands(clause, left, right, world)
                yield annotated(f"false  {unparse(clause).strip()}", given, width and width - 2)


def _is_false(clause: Node, my: ClassAd, target: ClassAd | None, world: Context) -> bool:
    try:
        return evaluate(clause, my, target, world) is False
    except EvaluationFailed:
        return False  # it was not looked at: another one decided


def _style(value: Value) -> str:
    if isinstance(value, bool):
        return "good" if value else "strong"
    return ("held" if value is not UNDEFINED else "idle") if isinstance(value, Exceptional) else "strong"


def _json(value: Value) -> str:
    # JSON's readers and writers of ads take whole ads, because only ads travel.
    return write_json(ClassAd({"v": value})).removeprefix('{"v": ').removesuffix("}")


# -- many --------------------------------------------------------------------------------------------------------------


def outcomes(cases: Iterable[Case], engine: Engine) -> Iterator[str]:
    """
    The value of each case in one line, or the reason why there is none; a case is MY, TARGET and an expression.
    """
    world = context(local=False)
    for my, target, expression in cases:
        try:
            ads = _ad(my), _ad(target) if target else None
            value = engine(parse(expression), *ads, world)
        except ClassAdParseError:
            yield "PARSE_ERROR"
        except EvaluationFailed:
            yield "EVAL_FAIL"
        else:
            yield unparse(value)


def _cases(lines: Iterable[str]) -> Iterator[Case]:
    for number, line in enumerate(lines, 1):
        columns = line.split("\t")
        if len(columns) != _COLUMNS:
            raise UsageError(
                f"line {number} has {len(columns)} columns where MY, TARGET and an expression belong"
            )
        my, target, expression = columns
        yield my, target, expression


@lru_cache(maxsize=_ADS_KEPT)
def _ad(text: str) -> ClassAd:
    """The ad of a row, from a cache, because most rows contain the same ads."""
    return ClassAd.parse(text) if text else ClassAd()


# -- engines -----------------------------------------------------------------------------------------------------------


def _engine(name: str) -> Engine:
    match name:
        case "interpreter":
            return interpret
        case "columnar":
            return _columnar()
        case _:
            return evaluate


def _columnar() -> Engine:
    """The engine for tables, with a table of one row: the target, or the ad itself if there is none."""
    # It needs numpy, which takes longer to load than all the rest.
    from kettle.classad.columnar import Evaluator, Table

    @lru_cache(maxsize=1)
    def table_of(row: _Same) -> Table:
        table = Table()
        table.put("row", row.ad.to_wire())
        return table

    def value_of(node: Node, my: ClassAd, target: ClassAd | None, world: Context) -> Value:
        table = table_of(_Same(my if target is None else target))
        [value] = Evaluator(table, my=None if target is None else my, context=world).values(node)
        if isinstance(value, EvaluationFailed):
            raise value
        return value

    return value_of


class _Same:
    """An ad by its identity: ads are compared by content, and that is more than looking twice costs."""

    def __init__(self, ad: ClassAd) -> None:
        self.ad = ad

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.ad is other.ad

    def __hash__(self) -> int:
        return id(self.ad)
