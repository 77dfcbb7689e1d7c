"""
ClassAds in columns: one expression evaluated in a whole table of ads at once.

    table = Table()
    table.put("slot1@host", ad)
    Evaluator(table, my=job).holds("requirements")

It agrees with `kettle.classad.reference_evaluator` in every row.
What has no kernel of its own is left to closures, once for each distinct combination of the attributes it mentions.
"""

from kettle.classad.columnar.evaluate import Evaluator
from kettle.classad.columnar.shared import Spending
from kettle.classad.columnar.table import Table

__all__ = ["Evaluator", "Spending", "Table"]
