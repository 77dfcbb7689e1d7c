"""Codes are members of the enums in `kettle_wire.codes`, and stand nowhere else as bare numbers or words."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kettle import VERSION
from kettle.schema_generation.field_descriptions import meanings
from kettle_wire import codes

KINDS: list[type[Enum]] = [
    codes.JobStatus,
    codes.Universe,
    codes.HoldCode,
    codes.HoldSubcode,
    codes.VacateCode,
    codes.RefusalCode,
]
NAMED = re.compile(
    r"_?(code|hold_?code|hold_?reason_?code|vacate_?code|vacate_?reason_?code|job_?universe|universe|job_?status)",
    re.IGNORECASE,
)
"""What holds a code: a field, a variable, an attribute of an ad."""
NUMBERS: frozenset[object] = frozenset(code for kind in KINDS[:-1] for code in kind if code.value)
VACATES: frozenset[object] = frozenset(codes.VacateCode) - {1000, 1024}
"""Numbers that are hardly anything else."""
REFUSED = frozenset({"RefusedError", "CommandRefusedError", "SpoolError", "Commanded"})
TWINS: dict[str, object] = {
    code.name.lower(): code for kind in (codes.HoldCode, codes.VacateCode) for code in kind
}


_NAMES = re.compile(rf"\b({NAMED.pattern})\b|{'|'.join(sorted(REFUSED))}|\.code\b", re.IGNORECASE)
_LARGE = re.compile(r"\b1_?[09]\d\d\b|\b0[xob]", re.IGNORECASE)


def may_have_codes(source: str) -> bool:
    """
    Whether a name or a number of a code stands there, so that it is worth the time to take the module apart.
    """
    together = source.lower().replace("_", "")
    return bool(_NAMES.search(source) or _LARGE.search(source)) or any(twin in together for twin in TWINS)


@pytest.fixture(scope="module")
def bare(roots: list[Path], top: Path) -> list[str]:
    """Where a code stands as a number or a word, except in the module of the codes."""
    return [
        f"{path.relative_to(top)}:{line}: {what}"
        for root in roots
        for path in sorted(root.rglob("*.py"))
        if path != Path(codes.__file__) and may_have_codes(source := path.read_text(encoding="utf-8"))
        for line, what in _bare(ast.parse(source))
    ]


def test_no_bare_code_stands_elsewhere(bare: list[str]) -> None:
    """As an argument, a value, a default or one side of a comparison; 0 is no code."""
    assert [] == bare


@pytest.mark.parametrize(
    "source",
    [
        "f(code=1007)",
        "code = 5",
        "code: int = 1",
        "def f(*, code: int = 12): pass",
        "if event.code == 1: pass",
        "if ad['JobStatus'] in {3, 4}: pass",
        "if ad.get('JobUniverse') == 5: pass",
        "ad = {'HoldReasonCode': 16}",
        "ad['JobUniverse'] = 5",
        "STARTER_ERROR = 1007",
        "JOB_POLICY = 3",
        "STARTED = 1_013",
        "STARTED = 0x3f5",
        "RELEASED, SHUTDOWN = 1017, 1013",
        "raise RefusedError('busy', 'later')",
        "x = refusal.code in {'busy', 'unavailable'}",
    ],
)
def test_a_bare_code_is_found(source: str) -> None:
    """The walk above sees each of the forms in which codes stood before."""
    assert [1] == [line for line, _ in _bare(ast.parse(source))]
    assert may_have_codes(source)


@pytest.mark.parametrize(
    "source",
    [
        "code = 0",
        "exit_code = 3",
        "f(code=HoldCode.JobPolicy)",
        "limit = 1000",
        "if process.returncode == 1: pass",
    ],
)
def test_other_numbers_are_no_codes(source: str) -> None:
    """Exit codes, limits, nothing."""
    assert [] == list(_bare(ast.parse(source)))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_code_says_what_it_means(kind: type[Enum]) -> None:
    """In one line below it, from which the reference is made."""
    assert set(kind.__members__) == set(meanings(kind))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_code_travels_as_what_it_is_worth(kind: type[Enum]) -> None:
    """In messages, in what is recorded and in text it cannot be told from the plain number or word."""
    for code in kind:
        plain = code.value
        assert msgspec.msgpack.encode(plain) == msgspec.msgpack.encode(code)
        assert msgspec.json.encode(plain) == msgspec.json.encode(code)
        assert json.dumps(plain) == json.dumps(code)
        assert (str(plain), hash(plain), plain) == (f"{code}", hash(code), code)


def test_numbers_are_named_once() -> None:
    """No member is another name for one that is there already."""
    assert [] == [name for kind in KINDS for name, code in kind.__members__.items() if code.name != name]


def test_codes_import_only_enum() -> None:
    """Every short command reads them."""
    tree = ast.parse(Path(codes.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert ["from enum import IntEnum, StrEnum"] == [ast.unparse(node) for node in imports]


def test_there_is_one_version(pyproject: dict[str, Any], top: Path, roots: list[Path]) -> None:
    """The one that services say on the bus is that of the distribution, and nobody has one of their own."""
    assert pyproject["project"]["version"] == VERSION
    said = [
        str(path.relative_to(top))
        for root in roots
        for path in sorted(root.rglob("*.py"))
        if f'"{VERSION}"' in path.read_text(encoding="utf-8")
    ]
    assert ["libs/kettle/__init__.py"] == said


def test_formulas_of_fair_share_are_cheap_to_load() -> None:
    """A command that shows shares does not load what computes matches."""
    program = (
        "import sys, kettle.fairshare; print('numpy' in sys.modules, 'kettle.matchmaking' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert "False False\n" == out.stdout


_SAYING = (ast.keyword, ast.Assign, ast.AnnAssign, ast.Compare, ast.Dict, ast.arguments, ast.Call)


def _bare(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, _SAYING):
            continue
        yield from ((value.lineno, f"{name} is {value.value!r}") for name, value in _codes(node))
        match node:
            case ast.Call(func=function, args=[ast.Constant(value=str() as word), *_]) if (
                _name(function) in REFUSED
            ):
                yield node.lineno, f"the refusal {word!r}"
            case ast.Call(func=function, keywords=keywords) if _name(function) in REFUSED:
                yield from (
                    (value.lineno, f"the refusal {value.value!r}")
                    for keyword in keywords
                    if keyword.arg == "code"
                    for value in _literals(keyword.value)
                )
            case ast.Compare(left=ast.Attribute(attr="code"), comparators=others):
                words = [each for other in others for each in _literals(other) if isinstance(each.value, str)]
                yield from ((word.lineno, f"the refusal {word.value!r}") for word in words[:1])
            case _:
                pass


def _codes(node: ast.AST) -> Iterator[tuple[str, ast.Constant]]:
    """Names with literals for them that are codes; each place once."""
    for name, value in _pairs(node):
        for literal in _literals(value):
            named = bool(NAMED.fullmatch(name)) and literal.value in NUMBERS
            constant = name.isupper() and literal.value in VACATES
            twin = literal.value == TWINS.get(name.replace("_", "").lower())
            if type(literal.value) is int and (named or constant or twin):
                yield name, literal
                break


def _pairs(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """What is called something, and what it is or is compared with."""
    match node:
        case ast.keyword(arg=str() as name, value=value):
            yield name, value
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            yield from list(zip(map(_name, targets), values, strict=False))[:1]
        case ast.Assign(targets=targets, value=value):
            yield from ((_name(target), value) for target in targets)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield _name(target), value
        case ast.Compare(left=left, comparators=[right]):
            yield from ((_name(left), right), (_name(right), left))
        case ast.Dict(keys=keys, values=values):
            yield from (
                (_name(key), value) for key, value in zip(keys, values, strict=True) if key is not None
            )
        case ast.arguments(args=args, posonlyargs=first, kwonlyargs=named):
            positional = [*first, *args]
            usual = positional[len(positional) - len(node.defaults) :]
            yield from ((one.arg, value) for one, value in zip(usual, node.defaults, strict=True))
            yield from ((one.arg, value) for one, value in zip(named, node.kw_defaults, strict=True) if value)
        case _:
            pass


def _literals(value: ast.expr) -> Iterator[ast.Constant]:
    match value:
        case ast.Constant():
            yield value
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts) | ast.Call(args=parts):
            yield from (each for part in parts for each in _literals(part))
        case ast.IfExp(body=body, orelse=orelse):
            yield from _literals(body)
            yield from _literals(orelse)
        case ast.BinOp(left=left, right=right, op=ast.BitOr()):
            yield from _literals(left)
            yield from _literals(right)
        case _:
            pass


def _name(node: ast.expr) -> str:
    """The last word of it: of `ad.get("JobStatus")` that."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Constant(value=str() as name) | ast.Subscript(slice=ast.Constant(value=str() as name)):
            return name
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str() as name), *_]):
            return name
        case _:
            return ""
