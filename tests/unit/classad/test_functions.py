"""What the vectors cannot show: the context's sources, octets, patterns that `re` spells differently."""

import time

import pytest

from kettle.classad import (
    ERROR,
    UNDEFINED,
    AbsTime,
    ClassAd,
    Context,
    EvaluationFailed,
    RelTime,
    Value,
    evaluate,
    parse,
    unparse,
)
from kettle.classad.functions import FUNCTIONS
from kettle.classad.functions.pcre import compile_pattern
from kettle.classad.functions.stringlists import items
from kettle.classad.functions.versions import natural_order

GROUPS = {("projects", "alice"): "physics, cms", ("projects", "bob"): ""}
CONTEXT = Context(
    now=lambda: 1_767_225_600,
    random=lambda: 0.999,
    utc_offset=lambda _: 3600,
    user_map=lambda name, user: GROUPS.get((name, user)),
)


def value_of(text: str, context: Context = CONTEXT) -> Value:
    return evaluate(parse(text), context=context)


def test_every_name_is_lower_case() -> None:
    """Functions are looked up by their lower-case name."""
    assert [name for name in FUNCTIONS if name != name.lower()] == []


def test_times_are_in_the_contexts_zone() -> None:
    """The local zone is what the context says it is."""
    assert AbsTime(0, 3600) == value_of("absTime(0)")
    assert AbsTime(1_767_225_600, 3600) == value_of("currentTime()")
    assert 1 == value_of('getHours(absTime("1970-01-01T00:00:00Z"))')
    assert [RelTime(3600.0), RelTime(3600.0)] == [value_of("timeZoneOffset()"), value_of("dayTime()")]
    assert "Thu Jan  1 01:00:00 1970" == value_of("formatTime(0)")


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("%G-W%V-%u", "2025-W01-2"),
        ("%D %T %p", "12/31/24 22:05:09 PM"),
        ("%z %Z %q%%", "+0000 UTC %q%"),
        ("%k|%l", "22|10"),
    ],
)
def test_layouts_of_strftime(layout: str, expected: str) -> None:
    """The C locale's directives, and unknown ones as they stand."""
    assert expected == value_of(f'formatTime({1_735_679_109}, "{layout}")')


def test_chance_stays_within_its_limits() -> None:
    """An integer limit is never reached, a real one is the scale."""
    assert [9, 4.995, 0.999] == [value_of("random(10)"), value_of("random(5.0)"), value_of("random()")]


def test_size_counts_octets() -> None:
    """A character may be several octets, and a cut may fall between them."""
    assert [2, "é", r'"\303"'] == [
        evaluate(parse("size(x)"), ClassAd({"x": "é"})),
        value_of(r'strcat("\303", "\251")'),
        unparse(value_of('substr("é", 0, 1)')),
    ]


def test_case_is_ascii() -> None:
    """Neither toUpper nor == knows letters beyond ASCII."""
    assert ["éA", False, True] == [
        value_of('toUpper("éa")'),
        value_of('"é" == "É"'),
        value_of('"éA" == "éa"'),
    ]


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("^[[:alpha:]_]+$", b"slot_x", True),
        ("[[:^digit:]]", b"123", False),
        ("[^[:space:]]", b" \t", False),
        ("[]x]", b"]", True),
        ("[^]]", b"]", False),
        ("[[]", b"[", True),
        ("[a&&b]", b"&", True),
        ("[a--z]", b"b", False),
        (r"\Qa.b\E.", b"a.bc", True),
        (r"\Qa.b", b"axb", False),
        (r"(?<user>\w+)@", b"alice@x", True),
        (r"(?<!a)b", b"ab", False),
        (r"a\h+b", b"a \tb", True),
        (r"[\h]", b"x", False),
        (r"a\Z", b"a\n", True),
        (r"a\z", b"a\n", False),
        (r"a++b", b"aab", True),
        ("a(?i)b", b"aB", True),
        ("a$", b"a\n", True),
        (r"a\sb", b"a\vb", True),
        (r"(a)\1", b"aa", True),
    ],
)
def test_perl_patterns_mean_what_perl_means(pattern: str, text: bytes, expected: bool) -> None:
    """What the engines spell differently is translated."""
    compiled = compile_pattern(pattern)
    assert compiled is not None
    assert expected is (compiled.search(text) is not None)


@pytest.mark.parametrize("pattern", ["(", "[a", r"a\K", "(?R)", "[[:nosuch:]]", "*"])
def test_what_no_engine_can_do_is_a_bad_pattern(pattern: str) -> None:
    """A difference is an error and never another answer."""
    assert compile_pattern(pattern) is None
    assert ERROR is evaluate(parse('regexp(p, "a")'), ClassAd({"p": pattern}))


def test_a_group_beyond_the_last_match_is_an_error() -> None:
    """A group that took no part is empty, one after the last that did cannot be asked for."""
    assert ["b", ERROR] == [
        value_of(r'regexps("(a)|(b)", "b", "\\1\\2")'),
        value_of(r'regexps("(a)|(b)", "a", "\\2")'),
    ]


@pytest.mark.parametrize(
    ("left", "right", "sign"),
    [
        (b"1.9", b"1.10", -1),
        (b"1.0", b"1.00", 1),
        (b"000", b"00", -1),
        (b"a1", b"a", 1),
        (b"9", b"9", 0),
        (b"09", b"0a", -1),
    ],
)
def test_versions_are_in_natural_order(left: bytes, right: bytes, sign: int) -> None:
    """Longer numbers are greater, more leading zeros come first."""
    order = natural_order(left, right)
    assert sign == (order > 0) - (order < 0)


def test_items_of_a_string_list() -> None:
    """Items are trimmed and empty ones dropped; delimiters are characters, not a pattern."""
    assert ("a b", "c") == items("a b] c^ ]", "]^-")
    assert ("a,b",) == items(" a,b ", "")


def test_user_maps_prefer_and_default() -> None:
    """The preferred group if the user has it, else the first; the default if there is none."""
    expected = ["physics, cms", "cms", "physics", "none", UNDEFINED]
    calls = ['"alice"', '"alice", "CMS"', '"alice", "atlas"', '"bob", "x", "none"', '"carol"']
    assert expected == [value_of(f'userMap("projects", {call})') for call in calls]


def test_debug_reports_and_returns() -> None:
    """debug() changes nothing about the value."""
    seen: list[str] = []
    assert 2 == value_of("debug(1+1)", Context(trace=seen.append))
    assert ["debug() saw 2"] == seen


def test_each_resource_is_judged_in_its_own_ad() -> None:
    """A job's requirement on resources counts the slot's resources that meet it."""
    job = ClassAd.parse("[RequireGPUs = Capability >= 4 && DeviceMemory > TARGET.Want; Want = 10]")
    slot = ClassAd.parse(
        "[A = [Capability=3.0]; B = [Capability=5.0]; C = [Capability=9.0]; AvailableGPUs = {A,B,C}; DeviceMemory = 11]"
    )
    assert 2 == evaluate(parse("countMatches(MY.RequireGPUs, TARGET.AvailableGPUs)"), job, slot)
    assert 0 == evaluate(parse("countMatches(MY.NoSuch, TARGET.AvailableGPUs)"), job, slot)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("argsToList(\"a'b\"\" c'd ''\")", None),
        ("argsToList(\"a'b c'd ''\")", '{ "ab cd","" }'),
        ('argsToList("\'a")', "error"),
        ('listToArgs({"","a\'"})', "\"'' a''''\""),
        ('mergeEnvironment("=x")', "error"),
    ],
)
def test_arguments_are_quoted_as_submit_does(text: str, expected: str | None) -> None:
    """Quotes join what they touch, and an open one is an error."""
    if expected is not None:
        assert expected == unparse(value_of(text))


@pytest.mark.parametrize(
    "expression",
    [
        'regexp("(a+)+$", text)',
        'regexp("(a|a)*$", text)',
        'regexp("(?=(a|aa)+$)b", text)',
        r'regexp("(a*)*\\1b", text)',
        'regexp("((((a?){500}){500}){500}){500}", text)',
        'regexp("(?:){1000000000}(?=b)", text)',
        'regexpMember("(a|a)*+$c", {text})',
        'replaceall("(?=(a|aa)+$)b|a", text, "x")',
        'stringList_regexpMember("(?!(a|aa)+$)c", text)',
    ],
)
@pytest.mark.parametrize("length", [40, 5_000])
def test_no_pattern_takes_long(expression: str, length: int) -> None:
    """A pattern made to be slow ends within 50 ms of processor time, with an answer or an error."""
    began = time.process_time()
    evaluate(parse(expression), ClassAd({"text": "a" * length + "b"}))
    assert 0.05 > time.process_time() - began


def test_a_pattern_that_leaves_too_many_ways_is_an_error() -> None:
    """Look-around is searched for by trying, so it is refused where there is too much to try."""
    assert ERROR is evaluate(parse('regexp("(?=(a|aa)+$)b", "aaab")'))
    assert ERROR is evaluate(parse('regexp("(?!a)b", text)'), ClassAd({"text": "a" * 2_000_000}))


def test_patterns_count_as_steps() -> None:
    """Many searches that are just short enough end with the budget of their evaluation."""
    search = 'regexp("(a|b)*c", text)'
    with pytest.raises(EvaluationFailed):
        evaluate(
            parse(" || ".join([search] * 100)),
            ClassAd({"text": "a" * 10_000}),
            context=Context(max_steps=20_000),
        )


@pytest.mark.parametrize(
    "expression",
    [
        "strcat(" + ", ".join(["text"] * 500) + ")",
        'join("", ' + ", ".join(["text"] * 500) + ")",
        "join(text, {0, 1, 2})",
    ],
)
def test_text_that_is_put_together_counts_as_steps(expression: str) -> None:
    """A short expression takes no hundred megabytes: it ends with its budget before it has them."""
    ad = ClassAd({"text": "a" * 1_000_000})
    assert isinstance(evaluate(parse("strcat(text, text)"), ad), str)
    with pytest.raises(EvaluationFailed):
        evaluate(parse(expression), ad, context=Context(max_steps=20_000))


def test_an_octet_beyond_ascii_has_no_other_case() -> None:
    """Patterns see octets: halves of characters must not be taken for letters."""
    assert False is evaluate(parse('regexp("\u00e9", "\u3a40", "i")'))
    assert True is evaluate(parse('regexp("m\u00fcN", "M\u00fcn", "i")'))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('regexps("(a*)*", "aab", "\\\\1")', "error"),
        ('regexps("(a*)*", "aab", "\\\\0")', '"aa"'),
        ('regexps("(?:a|b)+(c)?", "abc", "\\\\1")', '"c"'),
        ('regexp("^*", "a")', "error"),
        ('regexp("[\\\\d-z]", "a")', "error"),
        ('regexp("a{,2}", "a{,2}")', "true"),
        ('regexp("a # b", "a", "x")', "true"),
        ('regexp("(?#b)a", "a")', "true"),
        ('replaceall("^", "a\\nb", "> ", "m")', '"> a\\n> b"'),
        ('replaceall("a*?", "aa", "x")', "error"),
    ],
)
def test_patterns_that_engines_take_for_different_things(text: str, expected: str) -> None:
    """What RE2 would answer otherwise than PCRE is translated, or an error."""
    assert expected == unparse(value_of(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("string(relTime(5000000000.0))", '"--24855+-3:-14:-8"'),
        ("absTime(2147483648, 0)", 'absTime("1901-12-13T20:45:52-00:00")'),
        ('substr("abc", 4294967297)', '"bc"'),
    ],
)
def test_what_htcondor_counts_in_32_bits_is_cut_to_them(text: str, expected: str) -> None:
    """Durations, made instants and offsets in a string wrap as they do on x86-64."""
    assert expected == unparse(value_of(text))


def test_an_argument_that_decides_leaves_the_rest_alone() -> None:
    """strcat() does not look behind the first undefined, and userHome() takes what fails for an error."""
    assert UNDEFINED is value_of("strcat(undefined, absTime(0, -1))")
    assert "d" == value_of('userHome(absTime(0, -1), "d")')
    with pytest.raises(EvaluationFailed):
        value_of('strcat("a", absTime(0, -1))')


def test_what_nothing_stands_behind_is_unresolved() -> None:
    """unresolved() follows attributes to the names that are open, and gives up on a circle."""
    ad = ClassAd.parse("[a = x + b + TARGET.y; b = Y; c = c + x]")
    assert "y,x,Y" == evaluate(parse("unresolved(a)"), ad)
    assert "" == evaluate(parse("unresolved(c)"), ad)
    assert True is evaluate(parse('unresolved(a, "^X$")'), ad)
    assert UNDEFINED is evaluate(parse("unresolved(nosuch)"), ad)
