"""
How a ClassAd looks on the wire: a map from attribute name to a value or an expression.

Literals travel as themselves, so that a reader in any language needs no ClassAd parser for them;
everything else (lists, references, nested ads) is the text of an expression in new ClassAd syntax.
Names keep their spelling; they are compared without regard to case.
"""

from typing import Annotated

import msgspec


class Expr(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """An unevaluated ClassAd expression, as text in new syntax."""

    expr: str


Integer = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""What the language has: 64 bits with a sign.  A message with a larger one is refused where it comes in."""

Scalar = bool | Integer | float | str | Expr
Ad = dict[str, Scalar]
