"""The transform language, statement by statement, as HTCondor carries it out."""

import pytest

from kettle.transforms import TransformError, parse, transformed
from kettle.transforms.run import LONGEST
from kettle_wire.ads.types import Ad, Expr, Scalar

JOB: Ad = {"Owner": "anna", "RequestCpus": 2, "RequestMemory": Expr("1024 * RequestCpus"), "Queue": "long"}


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ('SET Site "north"', {"Site": "north"}),
        ("SET Total RequestCpus * 2", {"Total": Expr("RequestCpus * 2")}),
        ("SET = 1\nSET x = $(set)", {"x": 1}),
        ("SET requestcpus = 4", {"RequestCpus": 4}),
        ("EVALSET Total = RequestCpus * 2", {"Total": 4}),
        ("EVALSET Total RequestMemory", {"Total": 2048}),
        ('EVALSET Bad 1 + "x"', {}),
        ("DEFAULT RequestCpus 8", {}),
        ("DEFAULT RequestGPUs 8", {"RequestGPUs": 8}),
        ("SET Gone undefined\nDEFAULT Gone 1", {"Gone": Expr("undefined")}),
        ("n = 3\nSET A $(n)\nn = 4\nSET B $(n)", {"A": 3, "B": 4}),
        ("n = 3\nn = $(n) + 1\nEVALSET A $(n)", {"A": 4}),
        ("EVALMACRO n RequestCpus + 1\nSET A $(n)", {"A": 3}),
        ('EVALMACRO n strcat("a", "b")\nSET A "$(n)"', {"A": "ab"}),
        ('SET A "$(MY.Queue)er"', {"A": "longer"}),
        ('SET A "$(MY.Nothing:none)"', {"A": "none"}),
        ("EVALSET A $(MY.RequestMemory) + 1", {"A": 2049}),
        ("SET A $INT(MY.RequestCpus)", {"A": 2}),
        ('SET A "$(MY.A)$$(Machine)"', {"A": "$$(Machine)"}),
        ("COPY Queue OldQueue", {"OldQueue": "long"}),
        ("COPY Nothing Other", {}),
        ("COPY /request(.*)/ Old\\1", {"OldCpus": 2, "OldMemory": Expr("1024 * RequestCpus")}),
        ("COPY /^queue$/ \\0\\0", {"QueueQueue": "long"}),
        ("if defined MY.Queue\nSET A 1\nelse\nSET A 2\nendif", {"A": 1}),
        ("if defined MY.Nothing\nSET A 1\nelse\nSET A 2\nendif", {"A": 2}),
        ("EVALMACRO big RequestCpus > 1\nif $(big)\nSET A 1\nendif", {"A": 1}),
        ("# said\nSET A 1 + \\\n  1", {"A": Expr("1 + 1")}),
        ("SET A @=end\n1 +\n2\n@end", {"A": Expr("1 + 2")}),
        ("NAME n\nREQUIREMENTS RequestCpus > 1\nSET A 1", {"A": 1}),
        ("SET RequestCpus 9\nREQUIREMENTS RequestCpus == 2", {"RequestCpus": 9}),
        ("SET $(MY.Queue) 1", None),
    ],
)
def test_a_statement_changes_what_it_says(text: str, changed: Ad | None) -> None:
    """Everything else of the ad stays as it was."""
    if changed is None:
        with pytest.raises(TransformError):
            parse(text, source="t")
        return
    outcome = parse(text, source="t").apply(JOB)
    assert outcome is not None
    assert JOB | changed == outcome.ad


REALS: Ad = {"X": 1.5, "Tiny": 1e-5, "L": Expr(r'{1.5, "a\\b", X =?= 2}')}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('SET A "$(MY.X)"', "1.5"),
        ('EVALMACRO m MY.X*2\nSET A "v$(m)"', "v3.0"),
        ('SET A "$(MY.Tiny) $(MY.Inf:none)"', "1E-05 none"),
        ("EVALMACRO m -MY.X\nSET A $(m)", -1.5),
        ("EVALMACRO m L\nSET A size($(m)[1])\nEVALSET A A", 3),
    ],
)
def test_a_real_in_a_text_is_as_people_write_it(text: str, value: Scalar) -> None:
    """
    With as many digits as it has, also in a list; a macro is read again as the value that it was made of.
    """
    outcome = parse(text, source="t").apply(REALS)
    assert outcome is not None
    assert (value, []) == (outcome.ad["A"], outcome.complaints)


def test_a_list_in_a_macro_is_as_people_write_it() -> None:
    """Its reals, operators and strings."""
    macros: dict[str, str] = {}
    parse("EVALMACRO m L", source="t").apply(REALS, macros=macros)
    assert {"m": r'{ 1.5,"a\\b",X =?= 2 }'} == macros


TRICKS: Ad = {
    "X": "$(MY.X)",
    "Y": "$(MY.Y) $(n) $$(Machine) $INT(n)",
    "List": "$(MY.List), b",
    "Deep": "$EVAL(MY.Deep)",
}


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ('SET A "$(MY.X)"', "$(MY.X)"),
        ('n = 1\nSET A "$(MY.Y)"', TRICKS["Y"]),
        ('EVALMACRO m Y\nSET A "$(m)$(m)"', f"{TRICKS['Y']}{TRICKS['Y']}"),
        ('m = $(MY.X)\nm = $(m)!\nSET A "$(m)"', "$(MY.X)!"),
        ('SET A "$CHOICE(0,MY.List)"', "$(MY.List)"),
        ('SET A "$(MY.Nothing:$(MY.X))"', "$(MY.X)"),
        ('SET A "$SUBSTR(MY.X,2)"', "MY.X)"),
    ],
)
def test_macros_in_what_a_submitter_wrote_stay_text(text: str, changed: str) -> None:
    """HTCondor expands them; here they are values."""
    outcome = parse(text, source="t").apply(TRICKS)
    assert outcome is not None
    assert (changed, []) == (outcome.ad["A"], outcome.complaints)


@pytest.mark.parametrize(
    "text",
    [
        "SET A $INT(MY.RequestCpus,%9999d)",
        "SET A $STRING(MY.Queue,%.999999999s)",
        "SET A $INT(MY.Huge)",
        "SET A $REAL(MY.Huge,%d)",
        "\n".join(["m = " + "x" * 1000, *["m = $(m)$(m)"] * 20, 'SET A "$(m)"']),
        "\n".join(
            ["m0 = " + "x" * 1000, *[f"m{i + 1} = $(m{i})$(m{i})" for i in range(20)], 'SET A "$(m20)"']
        ),
    ],
)
def test_what_becomes_too_large_is_skipped_with_a_complaint(text: str) -> None:
    """A format, a number without end, and macros that grow."""
    macros: dict[str, str] = {}
    outcome = parse(text, source="t").apply(JOB | {"Huge": Expr('real("INF")')}, macros=macros)
    assert outcome is not None
    assert all(len(value) <= LONGEST for value in macros.values())
    assert outcome.complaints
    assert len(str(outcome.ad)) < 1_000_000


def test_names_go_and_change() -> None:
    """
    DELETE and RENAME of what is not there are no errors; a pattern takes the names before anything changes.
    """
    outcome = parse(
        "DELETE Nothing\nRENAME Nothing Else\nRENAME queue Lane\nDELETE /^request/\n", source="t"
    ).apply(JOB)
    assert outcome is not None
    assert {"Owner": "anna", "Lane": "long"} == outcome.ad
    swapped = parse("RENAME /^(a|ab)$/ \\1b", source="t").apply({"a": 1, "ab": 2})
    assert swapped is not None
    assert {"abb": 1} == swapped.ad


def test_an_ad_that_does_not_meet_the_requirements_is_left() -> None:
    """Also where they have no value."""
    assert parse("REQUIREMENTS RequestCpus > 2\nSET A 1", source="t").apply(JOB) is None
    assert parse("REQUIREMENTS NoSuch > 2\nSET A 1", source="t").apply(JOB) is None


def test_what_is_wrong_with_one_ad_is_a_complaint() -> None:
    """The statement is skipped, the others are carried out, and the line is named."""
    outcome = parse('SET A 1\nEVALSET B 1 + "x"\nx = ((\nSET C $(x)\nSET D 2', source="t").apply({})
    assert outcome is not None
    assert ({"A": 1, "D": 2}, ["t, line 2", "t, line 4"]) == (
        outcome.ad,
        [complaint.partition(":")[0] for complaint in outcome.complaints],
    )


def test_a_chain_shares_its_macros() -> None:
    """A later transform sees what an earlier one defined, as the routes of a computing element rely on."""
    macros: dict[str, str] = {}
    parse("default_xcount = 8", source="route").apply({}, macros=macros)
    outcome = parse("DEFAULT RequestCpus $(default_xcount)", source="after").apply({}, macros=macros)
    assert outcome is not None
    assert {"RequestCpus": 8} == outcome.ad


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("SET A 1\nSET B 1 +", 2, "not an expression"),
        ("SET A", 1, "a name and an expression"),
        ("SET 1A 2", 1, "a name and an expression"),
        ("COPY A", 1, "two names"),
        ("DELETE A B", 1, "a name"),
        ("DELETE /(/", 1, "no regular expression"),
        ("FROB A", 1, "no statement FROB"),
        ("TRANSFORM 3", 1, "write TRANSFORM alone"),
        ("INCLUDE : x", 1, "no place"),
        ("UNIVERSE lunar", 1, "there is no universe 'lunar'"),
        ("if true\nSET A 1", 1, "no endif"),
        ("SET A 1\nendif", 2, "without an if"),
        ("SET A @=end\n1", 1, "no end"),
        ("\n\n???", 3, "no statement"),
        ('SET owner "eve"', 1, "no transform may change it"),
        ("RENAME Owner X", 1, "no transform may change it"),
        ("COPY Queue Owner", 1, "no transform may change it"),
        ("REQUIREMENTS 1 +", 1, "not an expression"),
    ],
)
def test_text_that_makes_no_sense_is_refused_with_its_line(text: str, line: int, said: str) -> None:
    """Before any job is looked at."""
    with pytest.raises(TransformError, match=rf"t, line {line}: .*{said}"):
        parse(text, source="t", protected=("Owner",))


def test_no_pattern_reaches_what_is_protected() -> None:
    """Neither to take it away nor to put something in its place."""
    for text in ("DELETE /.*/", "RENAME /.*/ X\\0", "COPY /queue/ Owner"):
        outcome = parse(text, source="t", protected=("owner",)).apply(JOB)
        assert outcome is not None
        assert "anna" == outcome.ad["Owner"]


def test_a_table_is_transformed_as_its_jobs_are() -> None:
    """
    Of a thousand jobs of which two kinds differ to the transform, two are looked at, and each job has its own result.
    """
    rows: list[list[Scalar]] = [[str(number), 1 + number % 2] for number in range(1000)]
    transform = parse('EVALSET RequestMemory RequestCpus * 100\nSET Site "north"', source="t")
    looked: list[Ad] = []

    def change(ad: Ad) -> Ad:
        looked.append(ad)
        outcome = transform.apply(ad)
        assert outcome is not None
        return outcome.ad

    ad, columns, done = transformed(({"Cmd": "x"}, ["Args", "RequestCpus"], rows), transform.words, change)
    assert (2, {"Cmd": "x", "Site": "north"}) == (len(looked), ad)
    jobs = [dict(zip(columns, row, strict=True)) for row in done]
    assert [
        {"Args": str(n), "RequestCpus": 1 + n % 2, "RequestMemory": 100 * (1 + n % 2)} for n in range(1000)
    ] == jobs
