"""What jobs of a simulation say besides what they need and how long they take."""

from typing import Final

import msgspec

from kettle.classad import ClassAdParseError, parse
from kettle.jobs.routed_attributes import AWAITS
from kettle_wire.ads import Ad, Expr


class JobKind(msgspec.Struct, frozen=True, kw_only=True):
    """As submit files have it; only Kettle's own deciders read it."""

    requirements: str = ""
    """An expression, besides that there has to be room."""
    rank: str = ""
    concurrency_limits: str = ""
    routed: bool = False
    """It comes by a compute entrypoint, and is offered to nobody before that has given it a route."""

    def __post_init__(self) -> None:
        for name in ("requirements", "rank"):
            try:
                if text := getattr(self, name):
                    parse(text)
            except ClassAdParseError as error:
                raise ValueError(f"{name} is no expression: {error}") from error

    def said(self, requirements: str) -> Ad:
        """The attributes of a job that has these requirements in any case."""
        whole = f"({self.requirements}) && {requirements}" if self.requirements else requirements
        ad: Ad = {"Requirements": Expr(whole)}
        if self.rank:
            ad["Rank"] = Expr(self.rank)
        if self.concurrency_limits:
            ad["ConcurrencyLimits"] = self.concurrency_limits
        if self.routed:
            ad[AWAITS] = True
        return ad


PLAIN: Final = JobKind()
