"""
Patterns of map files and rules: texts that are compared whole, and regular expressions in slashes.

Expressions are carried out by RE2, in a time that is linear in the text: what a stranger sends cannot make the service
that looks at it busy. What RE2 has not (references to groups, looking ahead or behind) is refused when the file is read.
"""

import importlib
import string
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final, Literal

import msgspec

_MOST_PATTERN: Final = 10_000
"""Characters of an expression; RE2 compiles such a one within milliseconds."""
_EVERYTHING: Final = frozenset({"", ".*", ".+", "(.*)", "(.+)"})
_QUANTIFIERS: Final = frozenset("*+?{")
_NAME: Final = frozenset(string.ascii_letters + string.digits + "-_")


class PatternError(ValueError):
    """A pattern cannot be used; the message is a sentence without its beginning, the place."""


Kind = Literal["character", "escape", "class", "open", "close", "or"]


class _Token(msgspec.Struct, frozen=True):
    kind: Kind
    text: str
    depth: int
    """How many parentheses are around it."""


class Pattern:
    """
    A text to be found: whole if it is literal, anywhere if it is an expression that does not say otherwise.
    """

    def __init__(self, text: str, flags: str | None = None) -> None:
        """
        Without `flags` the text is literal; else it is an expression, `i`: of any case, `U`: as short as possible.

        Raises:
            PatternError: it is no expression, or one that RE2 cannot carry out in linear time.
        """
        self.text: Final = text
        self.flags: Final = flags
        self._compiled: Any = None if flags is None else _compiled(text, flags)
        # of most lines of a map file the beginning, an issuer, tells already that they do not match
        self.prefix, self._rest = ("", text) if flags is None or "i" in flags else _prefix(text)

    @classmethod
    def written(cls, text: str) -> "Pattern":
        """The pattern that a rule has as one text: `/expression/flags`, else literal. Raises PatternError."""
        if not text.startswith("/"):
            return cls(text)
        body, slash, flags = text[1:].rpartition("/")
        if not slash or flags.strip("iU"):
            return cls(text)  # a path
        return cls(body.replace(r"\/", "/"), flags)

    @property
    def is_expression(self) -> bool:
        """Whether it is a regular expression."""
        return self.flags is not None

    @property
    def groups(self) -> int:
        """How many groups it has, beside the whole."""
        return 0 if self._compiled is None else int(self._compiled.groups)

    def match(self, text: str) -> tuple[str, ...] | None:
        """The whole and the groups; None: it is not there. A group that took no part is empty."""
        if self._compiled is None:
            return (text,) if text == self.text else None
        if not text.startswith(self.prefix):
            return None
        try:
            found = self._compiled.search(text)
        except UnicodeEncodeError:  # half a character is nobody's name
            return None
        return None if found is None else (found.group(0), *(each or "" for each in found.groups()))

    def __str__(self) -> str:
        escaped = self.text.replace("/", r"\/")
        return self.text if self.flags is None else f"/{escaped}/{self.flags}"

    @cached_property
    def matches_everything(self) -> bool:
        """Whether each text matches that is not empty."""
        if not self.is_expression or self.text == "^$":
            return False
        return self.text.removeprefix("^").removesuffix("$") in _EVERYTHING

    def warnings(self) -> Iterator[str]:
        """What in an expression is seldom meant."""
        if not self.is_expression or self.matches_everything:
            return
        alternatives = _alternatives(self.text)
        if not all(_begins(each) for each in alternatives):
            yield f"{self} may match in the middle of a text: begin it with ^"
        if not all(_ends(each) for each in alternatives):
            yield f"{self} goes on matching whatever follows: end it with $, or with .* if that is meant"
        tokens = list(_tokens(self.text))
        for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
            dot = token.kind == "character" and token.text == "."
            if dot and all(each.kind == "character" and each.text in _NAME for each in (before, after)):
                yield rf"the dot in '{before.text}.{after.text}' of {self} stands for any character: write \."
                return

    def covers(self, other: "Pattern") -> bool:
        """Whether it certainly matches all that another matches; False also where that is not known."""
        if self.matches_everything or (self.text, self.flags) == (other.text, other.flags):
            return True
        if not other.is_expression:
            return self.match(other.text) is not None
        if self.flags is None or "i" in self.flags or "i" in (other.flags or ""):
            return False
        return self._rest in {".*", ".*$"} and bool(self.prefix) and other.prefix.startswith(self.prefix)


def _compiled(text: str, flags: str) -> Any:
    # loaded by those alone who have patterns; it brings no types
    re2: Any = importlib.import_module("re2")

    if len(text) > _MOST_PATTERN:
        raise PatternError(f"the expression has more than {_MOST_PATTERN:,} characters")
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = "i" not in flags
    try:
        return re2.compile(f"(?U:{text})" if "U" in flags else text, options)
    except re2.error as error:
        said: object = error.args[0]
        why = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        if why.startswith(("invalid perl operator", "invalid escape sequence")):
            why += "; RE2, which matches in linear time, has no references to groups and does not look ahead or behind"
        raise PatternError(f"/{text}/ is no expression that can be used: {why}") from error
    except UnicodeEncodeError as error:
        raise PatternError("the expression is no text") from error


def _tokens(text: str) -> Iterator[_Token]:
    """The parts of an expression that RE2 has accepted."""
    at = depth = 0
    while at < len(text):
        begin, depth_here = at, depth
        kind: Kind = "character"
        match text[at]:
            case "\\":
                end = text.find(r"\E", at) if text.startswith(r"\Q", at) else -2
                at = len(text) if end == -1 else max(end, at) + 2
                kind = "escape"
            case "[":
                at, kind = _end_of_class(text, at), "class"
            case "(":
                depth, at, kind = depth + 1, at + 1, "open"
            case ")":
                depth, at, kind = depth - 1, at + 1, "close"
            case "|":
                at, kind = at + 1, "or"
            case _:
                at += 1
        yield _Token(kind, text[begin:at], depth_here)


def _end_of_class(text: str, at: int) -> int:
    """Where the text goes on after `[...]`."""
    at += 2 if text.startswith("[^", at) else 1
    at += text.startswith("]", at)
    while at < len(text) and text[at] != "]":
        if text.startswith("[:", at) and (end := text.find(":]", at)) != -1:
            at = end + 2
        else:
            at += 2 if text[at] == "\\" else 1
    return at + 1


def _alternatives(text: str) -> list[list[_Token]]:
    """What `|` outside of parentheses divides."""
    found: list[list[_Token]] = [[]]
    for token in _tokens(text):
        if token.kind == "or" and token.depth == 0:
            found.append([])
        else:
            found[-1].append(token)
    return found


def _begins(tokens: list[_Token]) -> bool:
    texts = [token.text for token in tokens[:2]]
    return texts[:1] in (["^"], [r"\A"]) or texts == [".", "*"]


def _ends(tokens: list[_Token]) -> bool:
    texts = [token.text for token in tokens[-2:]]
    return texts[-1:] in (["$"], [r"\z"]) or texts in ([".", "*"], [".", "+"])


def _prefix(text: str) -> tuple[str, str]:
    """The literal text that follows ^, and the rest of the expression."""
    tokens = list(_tokens(text))
    if not tokens or tokens[0].text != "^" or any(token.kind == "or" and not token.depth for token in tokens):
        return "", text
    found: list[str] = []
    for at, token in enumerate(tokens[1:], 1):
        after = tokens[at + 1].text if at + 1 < len(tokens) else ""
        escaped = token.kind == "escape" and len(token.text) == 2 and not token.text[1].isalnum()
        plain = token.kind == "character" and token.text not in "^$."
        if after in _QUANTIFIERS or not (escaped or plain):
            return "".join(found), "".join(each.text for each in tokens[at:])
        found.append(token.text[-1])
    return "".join(found), ""
