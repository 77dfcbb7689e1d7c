import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.prominence.factories import count, parameters_of, text_of_fraction
from kettle_wire.prominence.factories import (
    ParameterSweep,
    RandomSample,
    Repeat,
    Sample,
    Sweep,
    ValueList,
    Zip,
)


def sweep(name: str, start: str, end: str, step: str | None = None, number: int | None = None) -> Sweep:
    return Sweep(
        name=name, start=Decimal(start), end=Decimal(end), step=Decimal(step) if step else None, number=number
    )


def swept(*sweeps: Sweep) -> list[dict[str, str]]:
    factory = ParameterSweep(name="f", jobs=["j"], parameters=list(sweeps))
    return [parameters_of(factory, index) for index in range(count(factory))]


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (sweep("x", "0", "1", "0.1"), "0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1"),
        (sweep("x", "0.3", "0.9", "0.3"), "0.3 0.6 0.9"),
        (sweep("x", "1", "3", "1"), "1 2 3"),
        (sweep("x", "1.0", "2.0", "0.50"), "1 1.5 2"),
        (sweep("x", "3", "1", "-1"), "3 2 1"),
        (sweep("x", "-0.2", "0.1", "0.1"), "-0.2 -0.1 0 0.1"),
        (sweep("x", "0", "0.99", "0.5"), "0 0.5"),
        (sweep("x", "5", "5", "1"), "5"),
        (sweep("x", "0", "1", number=5), "0 0.25 0.5 0.75 1"),
        (sweep("x", "0", "1", number=4), "0 0.333333333333333 0.666666666666667 1"),
        (sweep("x", "2", "9", number=1), "2"),
        (sweep("x", "1e-3", "3E-3", "0.001"), "0.001 0.002 0.003"),
    ],
)
def test_values_of_a_sweep_are_exact(one: Sweep, expected: str) -> None:
    """The end belongs to it if a whole number of steps reaches it, and whole numbers have no point."""
    assert expected.split() == [each["x"] for each in swept(one)]


def test_the_first_parameter_changes_slowest() -> None:
    """Every combination is there, up to four parameters."""
    made = swept(
        sweep("a", "0", "1", "1"),
        sweep("b", "0", "2", "1"),
        sweep("c", "0", "1", "1"),
        sweep("d", "0", "1", "1"),
    )
    assert 24 == len(made)
    assert sorted(map(str, made)) == list(map(str, made))
    assert ["a", "b", "c", "d"] == list(made[0])


def test_an_instance_is_made_without_the_others() -> None:
    """The last of 10^24 costs as little as the first."""
    factory = ParameterSweep(
        name="f", jobs=["j"], parameters=[sweep(name, "1", "1000000", "1") for name in "abcd"]
    )
    assert 10**24 == count(factory)
    assert dict.fromkeys("abcd", "1000000") == parameters_of(factory, 10**24 - 1)


@given(
    start=st.integers(-(10**6), 10**6),
    step=st.integers(1, 10**5),
    number=st.integers(1, 40),
    places=st.integers(0, 12),
    down=st.booleans(),
)
def test_a_sweep_has_the_values_that_arithmetic_says(
    start: int, step: int, number: int, places: int, *, down: bool
) -> None:
    """However many decimals there are, the k-th value is start + k * step, written exactly."""
    scale, step = 10**places, -step if down else step
    bounds = (Decimal(value).scaleb(-places) for value in (start, start + step * (number - 1), step))
    first, last, each = bounds
    made = swept(Sweep(name="x", start=first, end=last, step=each))
    assert [Fraction(start + step * k, scale) for k in range(number)] == [Fraction(one["x"]) for one in made]


@given(st.fractions(min_value=-(10**9), max_value=10**9))
def test_a_number_is_written_as_near_as_fifteen_digits_are(value: Fraction) -> None:
    """Exactly where that is possible; the text is always a plain decimal number."""
    text = text_of_fraction(value)
    assert "e" not in text.lower()
    assert abs(Fraction(text) - value) <= abs(value) / 10**14


def test_a_zip_takes_the_values_of_one_place() -> None:
    """Values keep what is in them; numbers are written as in a sweep."""
    values: list[Any] = ["it's", 'a "b"', "$x ${y}", " blank\nline ", "é", 1, 2.0, 0.5, True]
    factory = Zip(
        name="f",
        jobs=["j"],
        parameters=[ValueList(name="x", values=values), ValueList(name="n", values=list(range(9)))],
    )
    made = [parameters_of(factory, index) for index in range(count(factory))]
    assert [*values[:5], "1", "2", "0.5", "true"] == [each["x"] for each in made]
    assert [str(n) for n in range(9)] == [each["n"] for each in made]


def test_a_repetition_has_an_index_alone() -> None:
    """The client's class writes num in the place of number."""
    for factory in (Repeat(name="f", jobs=["j"], number=3), Repeat(name="f", jobs=["j"], num=3)):
        assert (3, {}) == (count(factory), parameters_of(factory, 2))
        with pytest.raises(IndexError, match="f has 3 instances, and no 3"):
            parameters_of(factory, 3)


def test_a_random_sample_is_drawn_again_by_its_seed() -> None:
    """Another seed draws other values; each parameter is drawn by itself, within its bounds."""
    samples = [
        Sample(name="u", start=Decimal("0.5"), end=Decimal("1.5")),
        Sample(name="l", start=Decimal("0.001"), end=Decimal(1000), distribution="logUniform"),
        Sample(name="i", start=Decimal(1), end=Decimal(6), distribution="integer"),
        Sample(name="v", values=["a", "b"]),
    ]
    factory = RandomSample(name="f", jobs=["j"], number=400, parameters=samples, seed=7)
    made = [parameters_of(factory, index) for index in range(400)]
    assert made == [parameters_of(factory, index) for index in range(400)]
    other = RandomSample(name="f", jobs=["j"], number=400, parameters=samples, seed=8)
    assert made[0] != parameters_of(other, 0)
    assert all(0.5 <= float(each["u"]) < 1.5 and 0.001 <= float(each["l"]) < 1000 for each in made)
    assert {*"123456"} == {each["i"] for each in made}
    assert {*"ab"} == {each["v"] for each in made}
    assert 100 < sum(float(each["l"]) < 1 for each in made) < 300


def test_values_of_a_document_are_as_exact_as_its_text() -> None:
    """No number goes through a binary fraction on its way from the document."""
    from kettle.prominence.nodes import WorkflowNodes
    from kettle.prominence.workflow_documents import read_workflow

    job = {
        "name": "j",
        "resources": {"cpus": 1, "memory": 1},
        "tasks": [{"image": "a", "runtime": "udocker"}],
    }
    text = json.dumps({
        "jobs": [job],
        "factories": [
            {"name": "f", "type": "parameterSweep", "jobs": ["j"], "parameters": [{"name": "x", "start": 0, "end": 0, "step": 0}]}
        ],
    })  # fmt: skip
    text = text.replace(
        '"end": 0, "step": 0', '"end": 0.3000000000000000000003, "step": 0.1000000000000000000001'
    )
    made = [node.parameters["x"] for node in WorkflowNodes(read_workflow(text))]
    assert ["0", "0.1000000000000000000001", "0.2000000000000000000002", "0.3000000000000000000003"] == made
