"""What the site makes of a submission."""

import msgspec
import pytest

from kettle.transforms import Transform
from kettle_services.schedd.domain.submission.admission import Admission, JobTransform, SubmitRequirement
from kettle_services.schedd.domain.submission.validation import Unacceptable
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.ads import Ad, Expr, Scalar

JOB: Ad = {"Cmd": "x", "RequestMemory": 100}


def admission(text: str = "", *requirements: SubmitRequirement) -> Admission:
    return Admission([JobTransform(name="t", transform=text)] if text else [], requirements)


def test_transforms_come_before_requirements() -> None:
    """
    A requirement sees what the transforms have made; the owner is there to be looked at, and is not recorded as said.
    """
    site = admission(
        'REQUIREMENTS Owner == "anna"\nSET Project "birds"',
        SubmitRequirement(name="p", expression='Project == "birds"', reason='strcat("no project, ", Owner)'),
    )
    admitted = site.admit("anna", JOB, [], [[], []], now=1.0)
    assert (JOB | {"Project": "birds"}, [], 2) == (admitted.ad, admitted.columns, len(admitted.rows))
    with pytest.raises(Unacceptable, match="no project, eve"):
        site.admit("eve", JOB, [], [[]], now=1.0)


def test_one_job_that_is_unacceptable_refuses_all() -> None:
    """A submission is one; a warning of many jobs is told once."""
    most = SubmitRequirement(name="memory", expression="RequestMemory <= 300")
    rows: list[list[Scalar]] = [[100], [200], [400], [500]]
    with pytest.raises(Unacceptable, match=r"RequestMemory <= 300.*memory"):
        admission("", most).admit("anna", {"Cmd": "x"}, ["RequestMemory"], rows, now=1.0)
    hint = msgspec.structs.replace(most, is_warning="RequestMemory < 1000")
    admitted = admission("", hint).admit("anna", {"Cmd": "x"}, ["RequestMemory"], rows, now=1.0)
    assert (1, rows) == (len(admitted.warnings), admitted.rows)


@pytest.mark.parametrize("name", ["Owner", "User", "clusterid", "JobStatus", "QDate"])
def test_nobody_forges_whose_job_it_is(name: str) -> None:
    """
    A transform that would is refused with its line when the schedd starts, as one is that cannot be read.
    """
    for text in (f'SET A 1\nSET {name} "eve"', f"SET A 1\nDELETE {name}", "SET A 1\nSET B ("):
        with pytest.raises(msgspec.ValidationError, match="job transform 'site', line 2"):
            msgspec.convert({"job_transforms": [{"name": "site", "transform": text}]}, ScheddSettings)


def test_a_pattern_does_not_forge_it_either() -> None:
    """Whatever the pattern says, the owner that requirements see is that of the credential."""
    site = admission(
        "COPY /Cmd/ Owner\nRENAME /^Owner$/ Other",
        SubmitRequirement(name="o", expression='Owner == "anna" && Other =?= undefined'),
    )
    assert JOB == site.admit("anna", JOB, [], [[]], now=1.0).ad


def test_a_requirement_that_cannot_be_read_refuses_the_start() -> None:
    """With its name."""
    with pytest.raises(msgspec.ValidationError, match="submit requirement 'r'"):
        msgspec.convert({"submit_requirements": [{"name": "r", "expression": "1 +"}]}, ScheddSettings)


@pytest.mark.parametrize(
    "text",
    [
        'SET A "$(MY.X)"',
        "SET A $(MY.X)",
        "EVALMACRO m X\nSET A $(m)$(m)",
        "SET A $INT(MY.X)",
        "SET A $INT(MY.N,%9999d)",
        "SET A $STRING(MY.X,%999999999s)",
        "SET A $CHOICE(0,MY.X)",
        "SET A $RANDOM_CHOICE(MY.X)",
        "SET A $EVAL(MY.X)",
        "m = $(MY.X)$(MY.X)\nn = $(m)$(m)$(m)\nSET A $(n)",
        "if $(MY.X)\nSET A 1\nendif",
        "EVALSET A eval(X)",
    ],
)
@pytest.mark.parametrize(
    "value",
    [
        "$(MY.X)",
        "$INT(MY.N,%9999d)",
        "$STRING(MY.X,%999999999s)",
        "$CHOICE(0,MY.X)",
        "$RANDOM_CHOICE(MY.X)",
        "(" * 5_000,
        "1.0/0.0",
        "-" * 5_000 + "1",
        'eval("' * 50,
        "$(a" * 3_000,
        "x" * 200_000,
    ],
)
def test_what_a_submitter_writes_is_a_value_and_nothing_else(text: str, value: str) -> None:
    """
    However a transform uses it: it is not expanded again, and what comes of it is bounded; at worst the job is refused.
    """
    job = JOB | {"X": value, "N": 1}
    try:
        admitted = admission(text).admit("anna", job, [], [[]], now=1.0)
    except Unacceptable as refusal:
        assert refusal.__cause__ is not None  # noqa: PT017 - it need not be refused
        return
    if text == 'SET A "$(MY.X)"' and "A" in admitted.ad and '"' not in value:
        assert value == admitted.ad["A"]
    assert len(str(admitted.ad)) < 2_000_000


def test_whatever_goes_wrong_in_a_transform_refuses_the_submission(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a sentence for the submitter, and the cause for the log."""

    def broken(*_: object, **__: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr(Transform, "apply", broken)
    with pytest.raises(Unacceptable, match="RecursionError") as refusal:
        admission("SET A 1").admit("anna", JOB, [], [[]], now=1.0)
    assert isinstance(refusal.value.__cause__, RecursionError)


def test_a_condition_that_cannot_be_read_does_not_hold() -> None:
    """A submitter cannot have both branches carried out."""
    site = admission("if $(MY.X)\nSET A 1\nelse\nSET B 2\nendif")
    admitted = site.admit("anna", JOB | {"X": "no condition"}, [], [[]], now=1.0)
    assert (False, 2, 1) == ("A" in admitted.ad, admitted.ad["B"], len(admitted.complaints))


@pytest.mark.parametrize(
    ("text", "requirement", "columns", "row"),
    [
        ("", "eval(Project)", ["Secret", "Project"], [False, "Secret"]),
        ("", "Project", ["Secret", "Project"], [False, Expr('eval(strcat("Sec", "ret"))')]),
        ("", "Project", ["Secret", "Project"], [False, Expr('MY[strcat("Sec", "ret")]')]),
        ("", "Project", ["Secret", "Project"], [False, Expr("[a = 1].Secret")]),
        ("SET Fine $(MY.Project)", "Fine", ["Secret", "Project"], [False, "Secret"]),
        ("EVALMACRO m Project\nEVALSET Fine $(m)", "Fine", ["Secret", "Project"], [False, "Secret"]),
        ("EVALSET Fine eval(Project)", "Fine", ["Secret", "Project"], [False, "Secret"]),
    ],
)
def test_no_requirement_is_slipped_past(
    text: str, requirement: str, columns: list[str], row: list[Scalar]
) -> None:
    """
    Each row is looked at that differs in what a requirement comes to, however the attribute is named that it depends on.
    """
    good = [[True, *row[1:]] for _ in range(2)]
    site = admission(text, SubmitRequirement(name="r", expression=requirement))
    site.admit("anna", {"Cmd": "x"}, columns, good, now=1.0)
    with pytest.raises(Unacceptable, match="requirement r"):
        site.admit("anna", {"Cmd": "x"}, columns, [*good, row], now=1.0)


def test_a_chosen_item_of_a_list_hides_nothing() -> None:
    """So jobs that differ in something else are looked at once."""
    site = admission("", SubmitRequirement(name="r", expression="MY.Sizes[0] < RequestMemory"))
    rows: list[list[Scalar]] = [[f"{number}"] for number in range(1_000)]
    job: Ad = {"Cmd": "x", "Sizes": Expr("{1, 2}"), "RequestMemory": 2}
    assert rows == site.admit("anna", job, ["Args"], rows, now=1.0).rows


def test_too_many_jobs_that_differ_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """In what is looked at; the same jobs pass where nobody looks at what they differ in."""
    monkeypatch.setattr("kettle_services.schedd.domain.submission.admission.MOST_VALUES", 1_000)
    rows: list[list[Scalar]] = [[f"{number}"] for number in range(501)]
    with pytest.raises(Unacceptable, match="several clusters"):
        admission("DELETE /^Secret/").admit("anna", {"Cmd": "x"}, ["Args"], rows, now=1.0)
    assert rows == admission("SET A 1").admit("anna", {"Cmd": "x"}, ["Args"], rows, now=1.0).rows


def test_only_the_first_sentences_are_told() -> None:
    """Of a hundred warnings twenty and how many there are; a long one is cut."""
    warn = SubmitRequirement(name="r", expression="false", reason="Args", is_warning="true")
    rows: list[list[Scalar]] = [[f"{number:05}" + "x" * 5_000] for number in range(100)]
    warnings = admission("", warn).admit("anna", {"Cmd": "x"}, ["Args"], rows, now=1.0).warnings
    assert (21, "and 80 more like these") == (len(warnings), warnings[-1])
    assert max(map(len, warnings)) <= 1_000
