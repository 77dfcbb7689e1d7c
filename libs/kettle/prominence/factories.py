"""
Factories: how many instances they make, and the parameters of the k-th, without making the others.

Values of sweeps are computed with fractions of whole numbers, so 0 to 1 by 0.1 are eleven values, and the fourth is 0.3.
"""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final, assert_never

import msgspec

from kettle.prominence.faults import Fault, below
from kettle.prominence.shapes import Rule
from kettle.prominence.values import text_of_value
from kettle_wire.prominence.factories import (
    Factory,
    OldZip,
    ParameterSweep,
    ParametricSweep,
    RandomSample,
    Repeat,
    Sample,
    Sweep,
    ValueList,
    Zip,
)

MOST_NODES: Final = 10_000_000
"""Jobs of a workflow, with all instances."""
_DIGITS: Final = 15
"""Significant digits of values that no decimal fraction is equal to."""
_MAGNITUDE: Final = 30
"""The largest power of ten, and the most decimals, of a bound."""

PLACES: Final[Mapping[type[msgspec.Struct], str]] = {
    ParameterSweep: "factory",
    Zip: "factory",
    Repeat: "factory",
    RandomSample: "factory",
    ParametricSweep: "factory",
    OldZip: "factory",
    Sweep: "parameter",
    ValueList: "parameter",
    Sample: "parameter",
}


def count(factory: Factory) -> int:
    """How many instances there are of each job of a factory."""
    match factory:
        case ParameterSweep(parameters=parameters):
            return math.prod(map(_values, parameters))
        case Zip(parameters=parameters):
            return len(parameters[0].values)
        case Repeat(number=number, num=num):
            return number or num or 0
        case RandomSample(number=number):
            return number
        case _:
            assert_never(factory)


def parameters_of(factory: Factory, index: int) -> dict[str, str]:
    """
    What the parameters are in one instance, from 0 on.

    Raises IndexError: there is no such instance.
    """
    if not 0 <= index < count(factory):
        raise IndexError(f"{factory.name} has {count(factory)} instances, and no {index}")
    match factory:
        case ParameterSweep(parameters=parameters):
            return _swept(parameters, index)
        case Zip(parameters=parameters):
            return {each.name: text_of_value(each.values[index]) for each in parameters}
        case Repeat():
            return {}
        case RandomSample(parameters=parameters, seed=seed):
            return {each.name: _drawn(each, seed or 0, index) for each in parameters}
        case _:
            assert_never(factory)


# -- sweeps ------------------------------------------------------------------------------------------------------------


def _values(sweep: Sweep) -> int:
    """How many values a parameter has."""
    if sweep.step is None:
        return sweep.number or 0
    return (Fraction(sweep.end) - Fraction(sweep.start)) // Fraction(sweep.step) + 1


def _swept(parameters: list[Sweep], index: int) -> dict[str, str]:
    found: dict[str, str] = {}
    for sweep in reversed(parameters):  # the last one changes fastest
        index, place = divmod(index, _values(sweep))
        found[sweep.name] = text_of_fraction(_value(sweep, place))
    return {sweep.name: found[sweep.name] for sweep in parameters}


def _value(sweep: Sweep, place: int) -> Fraction:
    start = Fraction(sweep.start)
    if sweep.step is not None:
        return start + place * Fraction(sweep.step)
    return start + (Fraction(sweep.end) - start) * Fraction(place, max(1, (sweep.number or 1) - 1))


def text_of_fraction(value: Fraction) -> str:
    """
    A number in decimal notation: exactly, if it has a last decimal, and else rounded; no point in whole numbers.
    """
    places = _decimals(value.denominator)
    if places is None:
        rounded = Context(prec=_DIGITS).divide(Decimal(value.numerator), Decimal(value.denominator))
        return f"{rounded:f}"
    whole, rest = divmod(abs(value.numerator) * 10**places // value.denominator, 10**places)
    sign = "-" if value < 0 else ""
    return f"{sign}{whole}.{rest:0{places}d}" if places else f"{sign}{whole}"


def _decimals(denominator: int) -> int | None:
    """How many decimals a fraction in its lowest terms has; None: they never end."""
    twos = (denominator & -denominator).bit_length() - 1
    rest, fives = denominator >> twos, 0
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 else None


# -- random samples ----------------------------------------------------------------------------------------------------


def _drawn(sample: Sample, seed: int, index: int) -> str:
    """
    The value of a parameter in one instance: it depends on the seed, the parameter's name and the index, and on nothing else.
    """
    digest = hashlib.sha256(f"{seed}/{sample.name}/{index}".encode()).digest()
    drawn = int.from_bytes(digest[:8])  # of 2**64
    if sample.values is not None:
        return text_of_value(sample.values[drawn * len(sample.values) >> 64])
    start, end = sample.start or Decimal(0), sample.end or Decimal(0)
    part = (drawn >> 11) / 2**53
    match sample.distribution:
        case "integer":
            return str(int(start) + (drawn * (int(end) - int(start) + 1) >> 64))
        case "logUniform":
            low, high = math.log(start), math.log(end)
            return text_of_value(math.exp(low + part * (high - low)))
        case "uniform":
            return text_of_value(float(start) + part * (float(end) - float(start)))
        case _:
            assert_never(sample.distribution)


# -- what must hold ----------------------------------------------------------------------------------------------------


def _sweep_rule(sweep: Sweep, pointer: str) -> Iterator[Fault]:
    bounds = {"start": sweep.start, "end": sweep.end, "step": sweep.step}
    sound = True
    for name, bound in bounds.items():
        if bound is not None and not _is_moderate(bound):
            sound = False
            sentence = f"{name} must have at most {_MAGNITUDE} digits before and behind its point"
            yield Fault(below(pointer, name), sentence)
    if (sweep.step is None) == (sweep.number is None):
        yield Fault(pointer, f"exactly one of step and number must be given for the parameter {sweep.name}")
    elif sweep.step is not None and sound:
        if not sweep.step:
            yield Fault(below(pointer, "step"), "step must not be 0")
        elif (sweep.end - sweep.start) / sweep.step < 0:
            sentence = f"step {sweep.step} leads away from end: {sweep.start} to {sweep.end}"
            yield Fault(below(pointer, "step"), sentence)


def _is_moderate(bound: Decimal) -> bool:
    exponent = bound.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -_MAGNITUDE and bound.adjusted() < _MAGNITUDE


def _zip_rule(factory: Zip | OldZip, pointer: str) -> Iterator[Fault]:
    name = "parameters" if isinstance(factory, Zip) else "parameterSets"
    lists = factory.parameters if isinstance(factory, Zip) else factory.parameter_sets
    yield from _unique((each.name for each in lists), below(pointer, name))
    for number, each in enumerate(lists):
        if len(each.values) != len(lists[0].values):
            yield Fault(
                below(pointer, name, number, "values"),
                f"{each.name} has {len(each.values)} values, and {lists[0].name} has {len(lists[0].values)}: they must be as many",
            )


def _sweeps_rule(factory: ParameterSweep | ParametricSweep, pointer: str) -> Iterator[Fault]:
    name = "parameters" if isinstance(factory, ParameterSweep) else "parameterSets"
    sweeps = factory.parameters if isinstance(factory, ParameterSweep) else factory.parameter_sets
    yield from _unique((sweep.name for sweep in sweeps), below(pointer, name))
    if (made := math.prod(map(_values, sweeps))) > MOST_NODES:
        yield Fault(below(pointer, name), f"the sweep makes {made} instances; the most are {MOST_NODES}")


def _repeat_rule(factory: Repeat, pointer: str) -> Iterator[Fault]:
    if (factory.number is None) == (factory.num is None):
        yield Fault(pointer, "number is missing in factory: how often the jobs are repeated")
    elif count(factory) > MOST_NODES:
        sentence = f"the factory makes {count(factory)} instances; the most are {MOST_NODES}"
        yield Fault(below(pointer, "number"), sentence)


def _random_rule(factory: RandomSample, pointer: str) -> Iterator[Fault]:
    yield from _unique((each.name for each in factory.parameters), below(pointer, "parameters"))
    if factory.number > MOST_NODES:
        sentence = f"the factory makes {factory.number} instances; the most are {MOST_NODES}"
        yield Fault(below(pointer, "number"), sentence)


def _sample_rule(sample: Sample, pointer: str) -> Iterator[Fault]:
    start, end = sample.start, sample.end
    if sample.values is not None:
        if start is not None or end is not None:
            yield Fault(pointer, f"values excludes start and end for the parameter {sample.name}")
    elif start is None or end is None:
        yield Fault(pointer, f"values, or start and end, must be given for the parameter {sample.name}")
    elif not (_is_moderate(start) and _is_moderate(end)):
        yield Fault(
            pointer, f"start and end must have at most {_MAGNITUDE} digits before and behind the point"
        )
    elif start > end:
        yield Fault(below(pointer, "start"), f"start {start} is more than end {end}")
    elif sample.distribution == "logUniform" and start <= 0:
        yield Fault(below(pointer, "start"), f"start must be more than 0 for logUniform, not {start}")
    elif sample.distribution == "integer" and not (start == int(start) and end == int(end)):
        yield Fault(
            below(pointer, "start"), "start and end must be whole numbers for the distribution integer"
        )


def _unique(names: Iterable[str], pointer: str) -> Iterator[Fault]:
    seen: set[str] = set()
    for number, name in enumerate(names):
        if name in seen:
            yield Fault(below(pointer, number, "name"), f"two parameters are called {name}")
        seen.add(name)


RULES: Final[Mapping[type[msgspec.Struct], Rule]] = {
    Sweep: _sweep_rule,
    Sample: _sample_rule,
    ParameterSweep: _sweeps_rule,
    ParametricSweep: _sweeps_rule,
    Zip: _zip_rule,
    OldZip: _zip_rule,
    Repeat: _repeat_rule,
    RandomSample: _random_rule,
}
