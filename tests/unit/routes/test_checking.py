"""What is said about a route file that is wrong, or looks so."""

import pytest

from kettle.routes import RouteFileError, check, read_routes, samples


def file(body: str, more: str = "", name: str = "R") -> str:
    return (
        f"JOB_ROUTER_ROUTE_NAMES = {name}\nJOB_ROUTER_ROUTE_R @=end\nUNIVERSE VANILLA\n{body}\n@end\n{more}"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            file("SET RequestMemory = $(mem"),
            "route R, line 4: SET RequestMemory $(mem: the macro call is not closed",
        ),
        (file("# why\nSET A )"), "route R, line 5: ')' is not an expression: "),
        (file("SETT A 1"), "route R, line 4: there is no statement SETT"),
        (file("if defined A\nSET B 1"), "route R, line 4: this if has no endif"),
        (
            file("REQUIREMENTS Queue == $(q"),
            "route R, line 4: REQUIREMENTS Queue == $(q: the macro call is not closed",
        ),
        (file("REQUIREMENTS $(q) =="), "route R, line 4: REQUIREMENTS ==: is no expression: "),
        (
            file("REQUIREMENTS $(MY.A) > 1"),
            "route R, line 4: REQUIREMENTS $(MY.A) > 1: write the attribute itself",
        ),
        (file("MaxJobs = many"), "route R, line 4: maxjobs must be a whole number above zero, not 'many'"),
        (file("if true\nMaxJobs = 1\nendif"), "route R, line 5: MaxJobs is read with the file"),
        (
            file("OnLocalRemove = shrug"),
            "route R, line 4: OnLocalRemove is 'shrug': write fail, hold or retry(n)",
        ),
        (file("UNIVERSE milky"), "route R, line 4: there is no universe 'milky'"),
        (file('SET Owner "eve"'), "route R, line 4: the attribute Owner says whose the job is"),
        (
            file('SET AcctGroup "x"'),
            'route R, line 4: SET AcctGroup "x": the attribute AcctGroup stays as it was',
        ),
        (file("UNIVERSE grid"), 'route R, line 2: it leads nowhere: write GridResource = "batch NAME"'),
        (
            file('UNIVERSE grid\nGridResource = "arc a.example"'),
            'route R, line 2: GridResource "arc a.example" is not carried out',
        ),
        (file("", name="Rr"), "there is no JOB_ROUTER_ROUTE_Rr; there is JOB_ROUTER_ROUTE_R"),
        (file("").replace("@end", "@fin"), "line 2: JOB_ROUTER_ROUTE_R: its value has no end"),
        (
            file("", "JOB_ROUTER_SELECTION = best"),
            "write one of first, round_robin, weight, least_load, rank",
        ),
        (
            file("", "JOB_ROUTER_SOURCE_JOB_CONSTRAINT = (("),
            "line 6: JOB_ROUTER_SOURCE_JOB_CONSTRAINT is no expression",
        ),
        (
            file("", "include command : /bin/id"),
            "line 6: include command : /bin/id: nothing is included here",
        ),
        (file("", "include : /etc/passwd"), "line 6: include : /etc/passwd: nothing is included here"),
        (file("", "what is this"), "line 6: what is this: it is neither NAME = VALUE"),
        (
            "JOB_ROUTER_ENTRIES = []",
            "line 1: JOB_ROUTER_ENTRIES is the old syntax: `kettle ce convert` writes",
        ),
        ("", "there is no route: JOB_ROUTER_ROUTE_NAMES names none"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_line(text: str, sentence: str) -> None:
    """The lines are those of the file, comments counted; one refusal has all that is wrong."""
    with pytest.raises(RouteFileError) as refused:
        read_routes(text, "routes")
    assert sentence in "\n".join(map(str, refused.value.problems))
    assert check(text, "routes", samples(), 0).refused == refused.value.problems


def test_all_that_is_wrong_is_said_at_once() -> None:
    """In the order of the lines."""
    with pytest.raises(RouteFileError) as refused:
        read_routes(file("SET A $(b", "JOB_ROUTER_MAX_JOBS = x\nnonsense"), "routes")
    assert [4, 6, 7] == [each.line for each in refused.value.problems]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (file("SET A $(nothing)1"), "route R, line 4: $(nothing) is defined nowhere, and becomes nothing"),
        (
            file("EVALSET x 1/(RequestCpus-1)"),
            "route R, line 4: '1/(RequestCpus-1)' evaluates to an error, for 3 of 5 sample ads",
        ),
        (file('SET RequestMemory "2000"'), 'route R makes RequestMemory the string "2000"'),
        (
            file("EVALSET RequestMemory maxMemory"),
            "route R makes RequestMemory undefined, for 4 of 5 sample ads",
        ),
        (
            file("", "JOB_ROUTER_MAXJOBS = 1"),
            "line 6: there is no JOB_ROUTER_MAXJOBS; did you mean JOB_ROUTER_MAX_JOBS?",
        ),
        (file("", "JOB_ROUTER_POLLING_PERIOD = 1"), "line 6: JOB_ROUTER_POLLING_PERIOD has no meaning here"),
        (file('SendIDTokens = "a"'), "route R, line 4: SendIDTokens has no meaning here"),
        (file("", "JOB_ROUTER_TRANSFORM_T = SET A 1"), "line 6: JOB_ROUTER_TRANSFORM_T is not used"),
        (
            file("", "JOB_ROUTER_ROUTE_G @=end\nUNIVERSE 5\nREQUIREMENTS RequestGPUs > 0\n@end", "R G"),
            "route G can never be chosen while route R has room: that one comes before it and has no requirement",
        ),
    ],
)
def test_what_looks_wrong_is_a_warning(text: str, sentence: str) -> None:
    """The file can be used."""
    report = check(text, "routes", samples(), 0)
    assert report.table is not None
    assert [each for each in report.warnings if sentence in str(each)], report.warnings
    assert 1 == len(report.warnings)


def test_a_sound_file_has_no_warnings() -> None:
    """The transforms of a CE have none either, whatever a route sets for them."""
    for body in ("", "default_queue = grid\ndefault_CERequirements = Site"):
        assert () == check(f"use ROUTES : CE\n{file(body)}", "routes", samples(), 0).warnings


def test_all_mistakes_of_a_route_are_told() -> None:
    """
    Of each statement its own, with its line; what says nothing about the others keeps none of them back.
    """
    body = "SETT A 1\nSET Owner 1\nSET B )\nendif\nMaxJobs = many"
    with pytest.raises(RouteFileError) as refused:
        read_routes(file(body), "routes")
    assert [4, 5, 6, 7] == [each.line for each in refused.value.problems]
    with pytest.raises(RouteFileError) as refused:
        read_routes(file("MaxJobs = many\nOnLocalRemove = shrug\nREQUIREMENTS $(MY.A)"), "routes")
    assert [4, 5, 6] == [each.line for each in refused.value.problems]


def test_the_nearest_template_is_named() -> None:
    """As the nearest route is."""
    with pytest.raises(RouteFileError, match="there is no such template; there is use ROUTES : ce"):
        read_routes(f"use ROUTES : CEE\n{file('')}", "routes")
