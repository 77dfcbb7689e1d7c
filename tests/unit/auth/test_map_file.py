import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from kettle.auth.mapping import map_file
from kettle.auth.mapping.findings import refusals
from kettle.auth.mapping.map_file import MapFile
from kettle.auth.mapping.names import NameRefused, name_of
from kettle.runtime import access_files


def nothing(file: str, name: str) -> Sequence[tuple[str, str]]:
    raise FileNotFoundError(2, "No such file or directory", name)


def lines(*written: str) -> MapFile:
    found, findings = map_file.read("map", "\n".join(written), nothing)
    assert [] == refusals(findings)
    return found


def findings(*written: str) -> list[str]:
    return [str(each) for each in map_file.read("map", "\n".join(written), nothing)[1]]


def mapped(file: MapFile, method: str, text: str) -> str | None:
    found = file.find(method, text)
    if found is None:
        return None
    user, domain = name_of(found[0].user, found[1], "pool")
    return f"{user}@{domain}"


FILE = lines(
    "# people",
    r"SCITOKENS /^https:\/\/cms\.example\.org\/,(ada|grace)$/ \1",
    r"SCITOKENS https://atlas.example.org/,7 atlas@atlas.example.org",
    r"SCITOKENS /^https:\/\/atlas\.example\.org\/,.*/ atlas",
    r'SSL "/DC=org/CN=Ada Lovelace" ada',
    r"SSL /^\/dc=org\/cn=([a-z]+) ([a-z]+)$/i \2@\1.example.org",
    "  fs\troot  nobody  # never",
    r"FS /^(.*)$/ \1",
    "SSL /.*,\\/vo\\/Role=pilot.*/ pilot\r",
)


@pytest.mark.parametrize(
    ("method", "text", "name"),
    [
        ("SCITOKENS", "https://cms.example.org/,ada", "ada@pool"),
        ("SCITOKENS", "https://cms.example.org/,adam", None),
        ("SCITOKENS", "https://cmsXexample.org/,ada", None),
        ("SCITOKENS", "https://atlas.example.org/,7", "atlas@atlas.example.org"),
        ("SCITOKENS", "https://atlas.example.org/,8", "atlas@pool"),
        ("scitokens", "https://atlas.example.org/,8", "atlas@pool"),
        ("IDTOKENS", "https://atlas.example.org/,8", None),
        ("SSL", "/DC=org/CN=Ada Lovelace", "ada@pool"),
        ("SSL", "/DC=ORG/CN=Grace Hopper", "Hopper@grace.example.org"),
        ("SSL", "/DC=org/CN=x,/vo/Role=pilot/Capability=NULL", "pilot@pool"),
        ("FS", "root", "nobody@pool"),
        ("FS", "linus", "linus@pool"),
    ],
)
def test_the_first_line_that_matches_says_who_it_is(method: str, text: str, name: str | None) -> None:
    """Expressions and literals, quoted or not, in the order of the file; methods have no case."""
    assert name == mapped(FILE, method, text)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (
            "SCITOKENS /^a",
            "map:1: nothing closes the / in column 11; a text that begins with a / has to be in quotes.",
        ),
        ('SSL "/CN=a b', 'map:1: nothing closes the " in column 5.'),
        ("SSL /^a$/x b", "map:1: 'x' follows the closing /; i and U are known."),
        ("SSL /^a$/", "map:1: a line has a method, a pattern and a user; quote what has blanks in it."),
        (r"SSL /^(a)$/ \2", r"map:1: '\2' refers to \2, and the pattern has one group."),
        (r"SSL a \1", r"map:1: '\1' refers to \1, and the pattern has no group."),
        (r"SSL /^(a)$/ x\y", r"map:1: 'x\y' has a backslash that no digit follows: \1 is the first group."),
        ("SSL /^(a$/ b", "map:1: /^(a$/ is no expression that can be used: missing ): ^(a$."),
        ("@include", "map:1: @include takes the name of one file or directory."),
        ("@include gone", "map:1: gone cannot be included: No such file or directory."),
        (f"SSL /^{'a' * 10_001}$/ b", "map:1: the expression has more than 10,000 characters."),
    ],
)
def test_what_is_no_line_is_refused_with_its_place(line: str, why: str) -> None:
    """A file is not used in part: what HTCondor would skip is refused."""
    assert [why] == findings(line)


@pytest.mark.parametrize("pattern", [r"^(a)\1$", "^(?=a)a$", "^(?<!b)a$", "^(?>a)$", "^a*+$"])
def test_expressions_that_may_backtrack_are_refused(pattern: str) -> None:
    """What takes more than linear time is refused, and the refusal says what RE2 lacks."""
    [why] = findings(f"SSL /{pattern}/ b")
    assert f"map:1: /{pattern}/ is no expression that can be used" in why


def test_what_an_expression_begins_with_changes_no_match() -> None:
    """The literal beginning by which lines are passed over is not what may be missing or spelt otherwise."""
    file = lines(
        "SSL /^ab?c/ 1",
        "SSL /^x|yz/ 2",
        r"SSL /^q\d/ 3",
        "SSL /^AB/i 4",
        "SSL /^(m|n)o/ 5",
        "SSL /^p{0}r/ 6",
        "SSL /^$/ 7",
    )
    texts = ("ac", "abc", "ayz", "q1", "abx", "no", "r", "pr")
    assert ["1", "1", "2", "3", "4", "5", "6", None] == [
        (found := file.find("SSL", each)) and found[0].user for each in texts
    ]


def test_an_expression_that_backtracks_elsewhere_takes_linear_time() -> None:
    """Nested repetition over a long text that nearly matches is answered at once."""
    file = lines(
        "SCITOKENS /^(([a-z])+.)+[A-Z]([a-z])+$/ x", "SCITOKENS /^(a|aa)+$/ y", "SCITOKENS /(.*)*(.*)*=$/ z"
    )
    begin = time.process_time()
    assert mapped(file, "SCITOKENS", "a" * 100_000 + "!") is None
    assert time.process_time() - begin < 5


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (r"SSL /\/CN=ada$/ b", "may match in the middle of a text: begin it with ^"),
        (r"SSL /^\/CN=ada/ b", "goes on matching whatever follows: end it with $"),
        (r"SSL /^a$|b$/ b", "may match in the middle of a text: begin it with ^"),
        (r"SSL /^cms.cern$/ b", r"the dot in 's.c' of /^cms.cern$/ stands for any character: write \."),
        ("GSI /^a$/ b", "there are no credentials of the method GSI"),
        ("SSL a b c", "what follows 'b' is not looked at"),
    ],
)
def test_what_is_seldom_meant_is_warned_of(line: str, why: str) -> None:
    """A pattern that lets in more than it seems to is used, with a warning that says where it is."""
    [warning] = findings(line)
    assert warning.startswith("map:1: warning: ")
    assert why in warning


@pytest.mark.parametrize(
    "line", [r"SSL /^a\.b[.]c.*/ b", r"SSL /.*,\/vo\/.*/ b", r"SSL /^a.+$/i b", "FS /.*/ b", "SSL /^$/ b"]
)
def test_a_careful_pattern_is_not_warned_of(line: str) -> None:
    """Anchors, `.*` that is written down and escaped dots are what the warnings ask for."""
    assert [] == findings(line)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("SSL a b", "SSL a c"),
        ("SSL /.*/ b", "SSL /^x$/ c"),
        (r"SSL /^(.+)$/ \1", "SSL a c"),
        ("SSL /^x.*$/ b", "SSL xyz c"),
        (r"SSL /^https:\/\/a,.*/ b", r"SSL /^https:\/\/a,(x|y)$/ c"),
        (r"SSL /^x\d$/ b", r"ssl /^x\d$/ c"),
    ],
)
def test_a_line_that_never_counts_is_warned_of(first: str, second: str) -> None:
    """What an earlier line of the method always answers is reported with the line that does."""
    [warning] = findings(first, "FS other other", second)
    assert warning.startswith("map:3: warning: never counts: map:1 (")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("SSL /^a$/ b", "FS a c"),
        (r"SSL /^x\.y,.*/ b", r"SSL /^x.y,a$/ c"),
        ("SSL /^$/ b", "SSL a c"),
        ("SSL /^a|b$/ b", "SSL c c"),
    ],
)
def test_a_line_that_may_count_is_not_called_shadowed(first: str, second: str) -> None:
    """Only what certainly never counts is said to."""
    assert not [each for each in findings(first, second) if "never counts" in each]


@pytest.mark.parametrize(
    ("template", "groups"),
    [
        (r"\1", ("x", "root@pool")),
        (r"\1@\2", ("x", "a", "b@c")),
        (r"\1@x", ("x", "a@b")),
        (r"\1", ("x", "")),
        (r"\1", ("x", "../etc")),
        (r"\1", ("x", "-rf")),
        (r"\1", ("x", "a b")),
        (r"\1", ("x", "a\n")),
        (r"a@\1", ("x", "")),
    ],
)
def test_what_is_matched_cannot_make_up_a_name(template: str, groups: tuple[str, ...]) -> None:
    """The text of a credential brings no domain, no path, no option and nothing that cannot be seen."""
    with pytest.raises(NameRefused):
        name_of(template, groups, "pool")


def test_files_are_included_in_the_order_of_their_names(tmp_path: Path) -> None:
    """
    A directory's files follow each other by name; an included file includes nothing, and each line has its own place.
    """
    (tmp_path / "d").mkdir()
    (tmp_path / "d/20-b").write_text("FS ada two\nFS grace two\n")
    (tmp_path / "d/10-a").write_text("FS ada one\n")
    (tmp_path / "d/10-a~").write_text("FS ada never\n")
    (tmp_path / "d/.swp").write_text("FS ada never\n")
    main = tmp_path / "map"
    main.write_text("@include d\nFS /.*/ rest\n")
    found, wrong = access_files.read([main], None)
    assert [f"{tmp_path}/d/20-b:1: warning: never counts: {tmp_path}/d/10-a:1 (FS ada one) comes first"] == [
        str(each) for each in wrong
    ]
    assert ["one@pool", "two@pool", "rest@pool"] == [
        mapped(found.maps[0], "FS", each) for each in ("ada", "grace", "eve")
    ]
    (tmp_path / "d/20-b").write_text("@include 10-a\n")
    [refused] = access_files.read([main], None)[1]
    assert f"{tmp_path}/d/20-b:1: a file that was included cannot include others." == str(refused)


def test_a_file_that_is_refused_changes_nothing(tmp_path: Path) -> None:
    """What was in force stays in force until all files can be used again."""
    main = tmp_path / "map"
    main.write_text("FS ada one\n")
    files = access_files.FilesInForce([main], None)
    assert [] == files.read()
    main.write_text("FS ada two\nFS /(/ x\n")
    assert [f"{main}:2: /(/ is no expression that can be used: missing ): (."] == [
        str(each) for each in files.read()
    ]
    assert "one@pool" == mapped(files.current.maps[0], "FS", "ada")
    main.unlink()
    assert [f"{main}: cannot be read: No such file or directory."] == [str(each) for each in files.read()]
    assert "one@pool" == mapped(files.current.maps[0], "FS", "ada")
    main.write_text("FS ada three\n")
    assert [] == files.read()
    assert "three@pool" == mapped(files.current.maps[0], "FS", "ada")
