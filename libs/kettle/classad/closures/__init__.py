"""
Expressions as compiled Python closures: the engine that evaluates single ads.

    operators   what combines values; leaves no expression
    sides       the comparisons of the two ads of a match, at once
    references  names: how they are found, and how the attribute behind one is entered
    compiler    an expression to its closure, once

A closure does not count levels.  Each expression knows how many it can go down (`Extent.height`); if not as many
are left, the interpreter takes it over, level by level.
Where an expression is left for another one, the levels above that place are known when it is compiled.
"""

from kettle.classad.closures.compiler import compiled
from kettle.classad.closures.references import COMPILER, entered, run

__all__ = ["entered", "run"]

COMPILER.compile = compiled
