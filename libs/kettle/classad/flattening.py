"""
Partial evaluation: what an ad already decides about an expression, and what it leaves open.

A name that the ad does not define stays a name; it is not taken for undefined, because another ad may define it.
Constants of an associative operator come first and become one.  Nested ads stay as they are.
"""

from __future__ import annotations

from typing import Final

from kettle.classad.ad import OWN, ClassAd
from kettle.classad.chains import joined, operands_of, regrouped
from kettle.classad.context import NOTHING, Context
from kettle.classad.errors import BudgetExceeded, EvaluationFailed, StepsExceeded
from kettle.classad.evaluator import evaluate_within
from kettle.classad.functions import FUNCTIONS
from kettle.classad.nodes import (
    AdLiteral,
    Binary,
    Call,
    Conditional,
    Elvis,
    ListLiteral,
    Literal,
    Logical,
    Node,
    Parentheses,
    Reference,
    RelTimeLiteral,
    Subscript,
    Unary,
)
from kettle.classad.scope import outside
from kettle.classad.values import ERROR, UNDEFINED, List, Stored, Value

_ASSOCIATIVE: Final = frozenset({"+", "*", "&", "|", "^"})
_ROOT: Final = frozenset({"root", "toplevel"})


def flatten(expression: Node, my: ClassAd | None = None, context: Context = NOTHING) -> Node:
    """
    `expression` with everything computed that the ad `my` decides.

    Raises `EvaluationFailed` if it is nested more deeply, or takes more steps, than `context` allows.
    """
    ad = ClassAd() if my is None else my
    try:
        return _Flattening(ad, context).node(expression, ad)
    except RecursionError:
        raise BudgetExceeded from None


class _Flattening:
    """`_active` are the attributes that are being flattened: one that refers to itself stays a name."""

    def __init__(self, root: ClassAd, context: Context) -> None:
        while root.parent is not None:
            root = root.parent
        self._root = root
        self._context = context
        self._depth = context.max_depth
        self._steps = context.max_steps
        self._active: set[tuple[int, str]] = set()

    def node(self, node: Node, ad: ClassAd) -> Node:
        self._depth -= 1
        self._spend()
        flat = self._flat(node, ad)
        self._depth += 1
        return flat

    def _spend(self) -> None:
        self._steps -= 1
        if self._depth < 0:
            raise BudgetExceeded
        if self._steps < 0:
            raise StepsExceeded

    def _value_of(self, node: Node, ad: ClassAd | None = None) -> Value | None:
        """The value of `node`, None if it has none; all evaluations share one budget."""
        used = self._context.max_steps - self._steps
        try:
            value, used = evaluate_within(node, ad or ClassAd(), None, self._context, steps=used)
        except StepsExceeded:
            self._steps = -1
            raise
        except EvaluationFailed:
            return None
        self._steps = self._context.max_steps - used
        return value

    def _flat(self, node: Node, ad: ClassAd) -> Node:
        match node:
            case Reference():
                return self._reference(node, ad)
            case RelTimeLiteral(seconds=seconds):
                return Literal(seconds)
            case Parentheses(inner=inner):
                inner = self.node(inner, ad)
                return inner if isinstance(inner, Literal) else Parentheses(inner)
            case Unary(op=op, operand=operand):
                return self._computed(Unary(op, flat := self.node(operand, ad)), flat)
            case Binary() | Logical():
                return self._operation(node, ad)
            case Conditional():
                return self._conditional(node, ad)
            case Elvis(preferred=first, fallback=second) | Subscript(base=first, index=second):
                first, second = self.node(first, ad), self.node(second, ad)
                return self._computed(type(node)(first, second), first, second)
            case Call():
                return self._call(node, ad)
            case ListLiteral(items=items):
                return ListLiteral(tuple(self.node(item, ad) for item in items))
            case _:
                return node

    def _computed(self, node: Node, *operands: Node) -> Node:
        """`node` as its value, if its operands are values and it has one."""
        if not all(isinstance(operand, Literal) for operand in operands):
            return node
        value = self._value_of(node)
        return node if value is None or isinstance(value, ClassAd | List) else Literal(value)

    def _reference(self, node: Reference, ad: ClassAd) -> Node:
        found = self._found(node, ad)
        if found is None:
            return self._now(node)
        stored, home = found
        if not isinstance(stored, Node):
            return Literal(stored) if not isinstance(stored, ClassAd | List) else node
        mark = id(home), node.key
        if mark in self._active:
            return node
        self._active.add(mark)
        flat = self.node(stored, home)
        self._active.discard(mark)
        return flat if isinstance(flat, Literal) else node

    def _now(self, node: Reference) -> Node:
        """``CurrentTime`` is a value where there is a clock."""
        magic = node.key == "currenttime" and node.base is None and self._context.now is not None
        return Literal(self._context.now()) if magic and self._context.now is not None else node

    def _found(self, node: Reference, ad: ClassAd) -> tuple[Stored, ClassAd] | None:
        """What stands behind a name, and in which ad; None if the ads do not tell."""
        self._spend()
        if node.base is None:
            return _look_up(node.key, self._root if node.absolute else ad)
        if not isinstance(node.base, Reference):
            base = self.node(node.base, ad)
            inside = ClassAd.from_literal(base, ad) if isinstance(base, AdLiteral) else None
        else:
            base, inside = self._inside(node.base, ad)
        if isinstance(base, Literal) and base.value is not UNDEFINED:
            return ERROR, ad
        return None if inside is None else _look_up(node.key, inside)

    def _inside(self, node: Reference, ad: ClassAd) -> tuple[Node, ClassAd | None]:
        """What a name before a dot stands for: a value, or the ad to look into."""
        found = self._found(node, ad)
        if found is None:
            plain = node.base is None and not node.absolute
            return (
                node,
                ad if plain and node.key in OWN else self._root if plain and node.key in _ROOT else None,
            )
        stored, home = found
        if isinstance(stored, AdLiteral):
            return node, ClassAd.from_literal(stored, home)
        mark = id(home), node.key
        if isinstance(stored, Reference) and mark not in self._active:
            self._active.add(mark)
            base, inside = self._inside(stored, home)
            self._active.discard(mark)
            return (base if isinstance(base, Literal) else node), inside
        return self._reference(node, ad), stored if isinstance(stored, ClassAd) else None

    def _conditional(self, node: Conditional, ad: ClassAd) -> Node:
        condition = self.node(node.condition, ad)
        match condition:
            case Literal(value=bool() | int() | float() as value):
                return self.node(node.then if value else node.otherwise, ad)
            case Literal(value=value) if value is not UNDEFINED:
                return Literal(ERROR)
            case _:
                return Conditional(condition, self.node(node.then, ad), self.node(node.otherwise, ad))

    def _call(self, node: Call, ad: ClassAd) -> Node:
        """
        Make a call with its original arguments: the result of ``unparse(a)`` does not follow from the value of ``a``.
        """
        if node.key not in FUNCTIONS:
            return Literal(ERROR)
        arguments = tuple(self.node(argument, ad) for argument in node.arguments)
        flat = Call(node.name, node.key, arguments)
        if not all(isinstance(argument, Literal) for argument in arguments):
            return flat
        value = self._value_of(node, ad)
        if value is None:
            return flat
        # Undefined out of nothing undefined is something that this ad or this context does not know.
        unknown = value is UNDEFINED and Literal(UNDEFINED) not in arguments
        return flat if unknown or isinstance(value, ClassAd | List) else Literal(value)

    def _operation(self, node: Binary | Logical, ad: ClassAd) -> Node:
        op = node.op
        if op not in _ASSOCIATIVE and isinstance(node, Binary):
            left, right = self.node(node.left, ad), self.node(node.right, ad)
            return self._combined(op, left, right)
        return regrouped(op, [self.node(operand, ad) for operand in operands_of(node)], self._combined)

    def _combined(self, op: str, left: Node, right: Node) -> Node:
        return self._computed(joined(op, left, right), left, right)


def _look_up(key: str, ad: ClassAd) -> tuple[Stored, ClassAd] | None:
    """What stands behind a name here or in the ads around."""
    stored = ad.find(key)
    return outside(ad, key) if stored is None else (stored, ad)
