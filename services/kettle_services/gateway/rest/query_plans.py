"""How the database means to answer a question, as it explains it."""

from collections.abc import Iterator

import msgspec


class PlanStep(
    msgspec.Struct,
    frozen=True,
    rename={
        "kind": "Node Type",
        "rows": "Plan Rows",
        "below": "Plans",
        "index": "Index Name",
        "table": "Relation Name",
    },
):
    """A step of the database's plan, as it explains it."""

    kind: str
    rows: int
    below: "list[PlanStep]" = []
    index: str = ""
    table: str = ""

    def steps(self) -> Iterator[str]:
        """Itself and those below it."""
        yield " ".join(word for word in (self.kind, self.index or self.table) if word)
        for step in self.below:
            yield from step.steps()


class ExplainedPlan(msgspec.Struct, frozen=True, rename={"plan": "Plan"}):
    """A plan, by its last step."""

    plan: PlanStep
