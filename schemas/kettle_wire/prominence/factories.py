"""
The part of a workflow's document that makes many jobs of one: each with other values of some parameters.
"""

from typing import Annotated, Literal

import msgspec

from kettle_wire.prominence.values import Count, Document, JobName, Name, Number, Value, VariableName

JobNames = Annotated[list[JobName], msgspec.Meta(min_length=1)]
"""Which jobs are made many times."""


class Sweep(Document, frozen=True):
    """The values of a parameter from `start` to `end`; exactly one of `step` and `number` is given."""

    name: VariableName
    start: Number
    end: Number
    """The last value, if a whole number of steps reaches it."""
    step: Number | None = None
    number: Count | None = None
    """How many values there are, `start` and `end` among them."""


class ValueList(Document, frozen=True):
    """The values of a parameter, one for each instance."""

    name: VariableName
    values: Annotated[list[Value], msgspec.Meta(min_length=1)]


class Sample(Document, frozen=True):
    """Where the values of a parameter are drawn from: either `values`, or `start` and `end`."""

    name: VariableName
    distribution: Literal["uniform", "logUniform", "integer"] = "uniform"
    """Of `start` to `end`: evenly, evenly by order of magnitude, or evenly among whole numbers, `end` among them."""
    start: Number | None = None
    end: Number | None = None
    values: Annotated[list[Value], msgspec.Meta(min_length=1)] | None = None


class ParameterSweep(Document, frozen=True, tag="parameterSweep"):
    """Every combination of the values; the first parameter changes slowest."""

    name: Name
    jobs: JobNames
    parameters: Annotated[list[Sweep], msgspec.Meta(min_length=1, max_length=4)]


class Zip(Document, frozen=True, tag="zip"):
    """The i-th instance has the i-th value of each parameter; all lists have the same length."""

    name: Name
    jobs: JobNames
    parameters: Annotated[list[ValueList], msgspec.Meta(min_length=1)]


class Repeat(Document, frozen=True, tag="repeat"):
    """Instances that differ by their index alone."""

    name: Name
    jobs: JobNames
    number: Count | None = None
    num: Count | None = None
    """How the Python class of the client spells `number`."""


class RandomSample(Document, frozen=True, tag="randomSample"):
    """
    Instances with values that are drawn independently of each other; the same seed draws the same values.
    """

    name: Name
    jobs: JobNames
    number: Count
    parameters: Annotated[list[Sample], msgspec.Meta(min_length=1)]
    seed: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] | None = None
    """Chosen and recorded at submission if it is not given."""


Factory = ParameterSweep | Zip | Repeat | RandomSample


class ParametricSweep(Document, frozen=True, tag="parametricSweep"):
    """The older form of `parameterSweep`: for all jobs of the workflow."""

    parameter_sets: Annotated[list[Sweep], msgspec.Meta(min_length=1, max_length=4)]


class OldZip(Document, frozen=True, tag="zip"):
    """The older form of `zip`: for all jobs of the workflow."""

    parameter_sets: Annotated[list[ValueList], msgspec.Meta(min_length=1)]


OldFactory = ParametricSweep | OldZip
