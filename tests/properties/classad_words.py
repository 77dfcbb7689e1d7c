"""What random expressions are made of: literals of every form, good and bad, and what each function takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMES: Final = ("a", "b", "c", "x", "y", "Memory", "Owner", "l", "n", "nosuch", "Requirements", "Rank")
MAGIC: Final = (
    "MY", "TARGET", "my", "Target", "parent", "root", "SELF", "other", "toplevel", "self", "LEFT", "RIGHT", "left", "lCtx", "rCtx", "ad",
)  # fmt: skip
ADS: Final = ("MY", "TARGET", "parent", "self", "Other", "LEFT", "Right", "root", "TOPLEVEL", "lCtx", "ad")
"""Which of these are values of their own."""
VALUES_OF_MATCHES: Final = (
    "symmetricMatch",
    "leftMatchesRight",
    "rightRankValue",
    "leftRankValue",
    "rightMatchesLeft",
)
ODD_NAMES: Final = ("'a'", "_x", "trueish", "isnt_a", "'\\101'", "x1")
QUOTED_NAMES: Final = ("'a b'", "'true'", "'x\\n'", "''", "'\\303'")
"""Not behind a point: the reference writes `x.'a b'` as `x.a b`, which nobody can read."""

INTEGERS: Final = (
    "0", "1", "2", "3", "5", "7", "8", "10", "-1", "-2", "-7", "63", "64", "65", "100", "3600", "86399", "90061",
    "2147483647", "2147483648", "-2147483649", "4294967296", "4611686018427387904", "9007199254740993",
    "9223372036854775807", "-9223372036854775808", "9223372036854775808", "-9223372036854775809",
    "99999999999999999999", "-0", "-01", "-017",
)  # fmt: skip
MOMENTS: Final = (
    "0", "1", "-1", "1043485200", "1043485200.5", "2147483648", "-2147483649", "4294967296", "1e9", "1e10", "-1e10", "true", "undefined",
    "error", '"2003"', "{0}", "-0.5",
)  # fmt: skip
PARTICULAR: Final = frozenset({"badlimit", "time", "splittime"})
"""
No other expressions for these: good limits would draw numbers, and years beyond 2^31 overflow in the reference.
"""
REALS: Final = (
    "0.0", "-0.0", "1.0", "1.5", "2.5", "-2.5", "0.1", ".5", "-.5", "1e3", "1E3", "1.5e-3", "1.5E+3", "1e-400",
    "1e400", "-1e400", "1e308", "3.0e0", "1e15", "1e16", "1e19", "-1e19", "0e0", "00.5", "01.5", "-00.5",
    "123456789.123456789", "0.30000000000000004", "9007199254740993.0", "4.9e-324", "1e-310",
    "2147483648.5", "9223372036854775807.0", "1.7976931348623157e308",
)  # fmt: skip
BAD_NUMBERS: Final = (
    "00", "01", "08", "0x10", "-0x10", "-0x1.8", "1K", "0b1", "5.", "5.e3", "1e", "1e+", ".e1", "1.5.5", "1.", "1..2", "-09",
)  # fmt: skip
WORDS: Final = (
    "true",
    "false",
    "TRUE",
    "False",
    "tRuE",
    "undefined",
    "error",
    "UNDEFINED",
    "Error",
    "unDefined",
)
STRINGS: Final = (
    "", "a", "A", "b", "abc", "ABC", "a b", "a,b,c", "1", "2.5", " 12 ", "-3", "0x10", "1e3", "inf", "nan", "-inf",
    "true", "FALSE", "t", "a\\nb", '\\"q\\"', "it's", "\\\\", "\\101\\102", "\\303\\251", "\\7", "\\377", "\\q",
    "\\x41", "\\400", "\\18", "a\\tb", "  lead", "trail  ", "slot1@host", "@", "1.10.2", "a+1", "1 2", "x",
    "MY.x", "TARGET.a", "\\?", "\\a\\b\\f\\r\\v", "\\400", "\\47", "\\042", "é", "12abc", "+5", ".5", "5.",
    "undefined", "[a=1]", "{1}", "infinity", "NaN(x)", "0x1.8p1", "1e400", "99999999999999999999",
)  # fmt: skip
LISTS: Final = (
    "", "a", "a,b,c", "A,B", "a, b , c", " a b c ", ",,a,,", "1,2,3", "1 2 3", "-1,-2", "1.5,2", "1,x", "1,+2", "1;2;3",
    "a;b", "abc,xx", ",", " ", "a\\tb", "a\\nb,c", "a,,b", "a, ,b", "1e3,2", "--1", "+", "0x10,1", "1..2", "5 5 5",
    "4294967296,1", "1e39,2e39", ".5,.25", "inf", "nan,1", "1e400", "3-4", "a:b::c", "a::b", ":a:", "9223372036854775807",
    "9007199254740993,1", "99999999999999999999", "-5,3,-0", "0.0,-0.0", "2147483648,2147483648",
)  # fmt: skip
DELIMITERS: Final = (",", " ", ";", ":", "", ",;", ", ", "::", "a", "\\t", "]", "^", "-", "\\\\", " :", ":;")
VERSIONS: Final = (
    "1", "1.0", "1.10", "1.9", "1.2.3", "10", "9", "01", "001", "1.01", "1.001", "a", "a1", "a10", "a9", "", "1.a", "8.9.10",
    "8.9.9", "0", "00", "000", "0.9", "09", "1.09", "1.0a", "00a", "0a", "x0", "x00", "x01", "x010", "x09", "x1", "\\303",
)  # fmt: skip
PATTERNS: Final = (
    "a", "^a", "a$", ".", ".*", "a*", "b+", "(a)(b)?", "[a-c]+", "(", "[", "a|b", "^$", "", "\\\\d+", "\\\\w", "\\\\bx", "(a)|(b)",
    "(?i)A", "[[:digit:]]", "a{2}", "a{1,2}", "x*?", "^([^@]+)@(.+)$", "\\\\.", "(?=a)", "(?!a)b", "(a)\\\\1", "A B", "*", "a**",
    "(?<n>a)", "(?:b)c", "[^,]+", "\\\\s", "\\\\S+$", "^ab", "b", "c$", "\\n", "[]a]", "a\\\\", "\\\\Qa.b\\\\E", "(?#c)a", "(|a)", "a#b",
)  # fmt: skip
ATOMS: Final = (
    "a", "b", "c", "B", ".", "[ab]", "[^a]", "[a-c]", r"\\d", r"\\w", r"\\W", r"\\s", r"\\S", "[[:alpha:]]", "[[:digit:]x]",
    r"\\n", r"\\.", r"\\x41", r"\\101", r"\\h", r"\\v", r"\\N", r"\\e", "(?i:a)", "(?:ab|c)", "(?<n>a)", "(a)", "(a|b)*", "(a*)*", "(a)?",
    "(|a)", "((a)|b)", "()", "{", "]", "{2", "a{,2}", "a{2}", "a{1,2}", "[]a]", "[a-]", "#c", " ", "-", "\\303", r"\\Qa.b\\E", "(?>a+)", "a++",
    r"\\R", r"\\X", r"\\p{L}", "(?1)", "(?|a|b)", "(a)\\\\1",
)  # fmt: skip
ASSERTIONS: Final = (
    "^", "$", r"\\b", r"\\B", r"\\A", r"\\Z", r"\\z", "(?=a)", "(?!b)", "(?<=a)", "(?<!b)", "(?i)", "(?s)", r"\\G", r"\\K", "(?#x)",
)  # fmt: skip
REPEATS: Final = ("", "", "", "*", "+", "?", "{2}", "{1,3}", "*?", "+?", "??")
OPTIONS: Final = ("", "i", "I", "m", "s", "x", "g", "f", "fg", "gf", "ig", "imsx", "z", "u", "U", "xi")
SUBSTITUTIONS: Final = (
    "", "x", "\\\\0", "\\\\1", "<\\\\0>", "\\\\2\\\\1", "\\\\\\\\", "\\\\a", "\\\\9", "-", "$1", "&", "\\\\", "\\\\3", "\\\\10",
)  # fmt: skip
SUBJECTS: Final = (
    "ab",
    "aab",
    "a\\nb",
    "a\\n",
    "\\nb",
    "aaa",
    "a1_",
    "bab",
    "cab",
    "axA",
    "#c",
    "{2",
    "a{,2}",
    "a.b",
    "abcabc",
    "cABb",
)
ABSOLUTE: Final = (
    "2003-01-25T09:00:00-06:00", "2003-01-25T09:00:00-0600", "2003-01-25T09:00:00Z", "2003-01-25", "2003-01", "2003",
    "2003-01-25 09:00:00", "20030125090000", "2003-13-45T25:61:61Z", "2003-01-25T09:00:00+05:30", "2003-01-25z",
    "1969-12-31T23:59:59Z", "1970-01-01T00:00:00+01:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2004-02-29Z",
    "2003-01-25T09:00:00 -06:00", "2003-01-25T09:00:00-06", "2003-1-2", "x2003y01z25", "2003-01-25T09-0600", "2003-01-25-0600",
    "2003-01-25T09:00:00.5Z", "2003-01-25T09:00-06:00", "20030125T0900", "2003-00-00", "1600-01-01", "2003Z", "2003-01-25T09:00:00Z  ",
    "2003-01-25T09:00:00+00:30", "2003-01-25T09:00:00-00:30", "203x", "20-3", "1970-1-1-0000", "2003 1", "2003-01-2",
)  # fmt: skip
NOT_ABSOLUTE: Final = (
    "abc", "", "203", "2003-01-25T09:00:00+0530 ", "2003-01-25T09:00:00+1", "1969-12-31T23:59:59", "+01:00", "Z", "12345678901234567",
)  # fmt: skip
RELATIVE: Final = (
    "5", "1:05", "1:01:05", "1+01:01:05", "-1+01:01:05", "1d2h3m4s", "2h", "3m4.5s", "90061", "", "1d", "-5", "5.5", "-2h",
    "1+", "1+2", "1+2:3", "d", "5s", "5 s", " 5", "5 ", "1h2", "1h 2m", "- 5", ".5", "5.", "1:", ":1", "+5", "-",
    "1d2", "1D2H3M4S", "99:99", "1:60:60", "100000000000", "1:1.5", "1+1:1:1.25", "5m", "1+5m", "2h30", "2h:30", "-:5", "4294967297m",
)  # fmt: skip
NOT_RELATIVE: Final = ("abc", "1:2:3:4", "1m2h", "1.5h", "1::2", "5x", "--5", "5..5")
FORMATS: Final = (
    "%Y-%m-%d", "%c", "%H:%M:%S", "%j %U %W %V %G %g", "%a %A %b %B", "%e %k %l %I %p %P", "%s", "%z", "%Z", "%%", "%", "x%", "%D %F %T %R %r",
    "%C %y %u %w %h", "%n%t", "%x %X", "%E", "%Ey %Od", "", "abc", "%q", "%5Y", "%-d", "%_m", "%^a", "%+", "%N", "%L", "%0e", "%#p",
)  # fmt: skip
ENVIRONMENTS: Final = (
    "", "A=1", "A=1;B=2", "A=1 B=2", "A='x y'", "A='it''s'", "=x", "A", "A=", "A=1;;B", "A=1;A=2", "A=1 A=2", "'A=1", "A=a b;B=c", "A='x' 'B=y'",
    "a=1 A=2", "A=1|B=2", 'A=\\"x\\"', "A=1\\nB=2", " A=1 ", "A==", "A='", "A=;B=", "A=b''c", "_=1 a=2 Z=3", "''", "'A'=1", ";", "A=1;",
)  # fmt: skip
ARGUMENTS: Final = (
    "", "a b", "a 'b c' d", "'it''s'", "a''b", "'a", "  a  b  ", "a\\tb", "a\\nb", "''", '\\"a\\"', "a\\\\ b", "'a'b'c'", "-x --y=1", '\\"\\"', 'a\\"b',
    "'' ''", "a'' ''b", "\\\\", "a'b c'd", "\\v", "\\ra",
)  # fmt: skip
OPERATORS: Final = (
    "<",
    "<=",
    "==",
    "!=",
    ">=",
    ">",
    "is",
    "isnt",
    "=?=",
    "=!=",
    "IS",
    "",
    "+",
    "&&",
    "<>",
    " <",
    "Isnt",
)

BINARY: Final = (
    "+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "=?=", "=!=", " is ", " isnt ", " IS ", "&", "|", "^", "<<", ">>", ">>>",
    "&&", "||", "&&", "||", "==", "+", "-", "?:",
)  # fmt: skip
NOISE: Final = "+-*/%()[]{}.,;:?=<>!&|^~\"'\\ ab1 0e#$@\n"

# Kinds of arguments by function; a star repeats the last, a question mark begins what may be left out.
# Left out: time, random, currentTime, dayTime, debug, userHome of real users (they differ from call to call),
# and userMap (no map exists here; every answer is the default).
SIGNATURES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("isUndefined", "isError", "isString", "isInteger", "isReal", "isBoolean", "isList"), "any"),
    **dict.fromkeys(("isClassAd", "isAbsTime", "isRelTime", "int", "real", "string", "bool"), "any"),
    "absTime": "moment ? offset",
    "relTime": "duration",
    "ifThenElse": "condition any any",
    "eval": "code",
    "unparse": "reference",
    "unresolved": "reference ? pattern",
    **dict.fromkeys(("floor", "ceiling", "ceil", "round"), "number"),
    "pow": "number number",
    "quantize": "number quanta",
    "random": "badlimit",
    "size": "collection",
    "member": "any list",
    "identicalMember": "any list",
    **dict.fromkeys(("sum", "avg", "min", "max"), "numbers"),
    "anyCompare": "operator list any",
    "allCompare": "operator list any",
    "strcat": "? any *",
    "join": "text ? joinable *",
    "toUpper": "text",
    "toLower": "text",
    "substr": "text integer ? integer",
    "strcmp": "text text",
    "stricmp": "text text",
    **dict.fromkeys(("versioncmp", "versionLT", "versionLE", "versionGT", "versionGE", "versionEQ"), "version version"),
    "version_in_range": "version version version",
    "interval": "integer",
    "regexp": "pattern subject ? options",
    "regexps": "pattern subject substitution ? options",
    "replace": "pattern subject substitution ? options",
    "replaceall": "pattern subject substitution ? options",
    "regexpMember": "pattern texts ? options",
    **dict.fromkeys(("getYear", "getMonth", "getDayOfYear", "getDayOfMonth", "getDayOfWeek"), "instant"),
    **dict.fromkeys(("getHours", "getMinutes", "getSeconds", "getDays"), "time"),
    "splitTime": "time",
    "formatTime": "splittime ? format",
    "timeZoneOffset": "",
    "stringListsIntersect": "items items ? delimiters",
    **dict.fromkeys(
        ("stringListSize", "stringListSum", "stringListAvg", "stringListMin", "stringListMax"), "items ? delimiters"
    ),
    **dict.fromkeys(("stringListMember", "stringListIMember"), "text items ? delimiters"),
    **dict.fromkeys(("stringListSubsetMatch", "stringListISubsetMatch"), "items items ? delimiters"),
    "stringList_regexpMember": "pattern items ? delimiters options",
    "split": "items ? delimiters",
    "splitUserName": "address",
    "splitSlotName": "address",
    "envV1ToV2": "environment",
    "mergeEnvironment": "? environment *",
    "argsToList": "arguments ? version12",
    "listToArgs": "texts ? version12",
    "userHome": "nobody ? text",
    "userMap": "text text ? text text",
    "evalInEachContext": "any ads",
    "countMatches": "condition ads",
    "nofunc": "? any *",
}  # fmt: skip
FUNCTIONS: Final = tuple(SIGNATURES)
CLOCKS: Final = {("absTime", 1), ("formatTime", 1), ("random", 1)}
"""With an argument less they ask the clock or chance."""
