"""The type predicates as kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from kettle.classad.columnar.column import Tag
from kettle.classad.columnar.distinct import distinct
from kettle.classad.columnar.vector import FALSE, TRUE, Mask, Unknown, Vector, both, inverse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kettle.classad.columnar.frame import Frame
    from kettle.classad.nodes import Node

    Run: TypeAlias = Callable[[Frame], Vector]


def predicate(holds: Callable[[Vector], Mask], operand: Run, node: Node) -> Run:
    """Whether the operand is of a type, in each row."""

    def run(frame: Frame) -> Vector:
        try:
            answer = holds(operand(frame))
        except Unknown:
            return distinct(node, frame)
        return (TRUE if answer else FALSE) if isinstance(answer, bool) else Vector(Tag.BOOLEAN, answer)

    return run


def _of_kind(kind: int) -> Callable[[Vector], Mask]:
    def answer(vector: Vector) -> Mask:
        if vector.kind != kind:
            return False
        return both(inverse(vector.undefined), inverse(vector.error))

    return answer


PREDICATES: Final[Mapping[str, Callable[[Vector], Mask]]] = {
    "isundefined": lambda vector: vector.undefined,
    "iserror": lambda vector: vector.error,
    "isboolean": _of_kind(Tag.BOOLEAN),
    "isinteger": _of_kind(Tag.INTEGER),
    "isreal": _of_kind(Tag.REAL),
    "isstring": _of_kind(Tag.STRING),
}
