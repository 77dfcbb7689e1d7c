"""
Paths of routes as the web server matches them.

Pure.  What stands in the last place of a path may be any word but those that other routes have there: `POST /workflows/12/graph` is a method
that the graph does not have, and no unknown order to a workflow.
"""

import re
from collections.abc import Collection, Iterator
from typing import Final

from msgspec import inspect

from kettle_wire.rest.route import Route

_LAST: Final = re.compile(r"\{(\w+)\}$")
_WORD: Final = re.compile(r"[A-Za-z0-9_-]+")


def pattern(route: Route, routes: Collection[Route]) -> str:
    """The path of a route among all of them: a path of a file has slashes."""
    found = _LAST.search(route.path)
    if found is None or found[1] == "path":
        return route.path.replace("/{path}", "/{path:.+}")
    before = route.path[: found.start()]
    words = sorted(set(_words_in_its_place(before, routes)))
    verbs = sorted(set(_verbs_behind(route.path, routes)))
    not_words = f"(?!(?:{'|'.join(map(re.escape, words))})$)" if words else ""
    not_verbs = f"(?!.*:(?:{'|'.join(map(re.escape, verbs))})$)" if verbs else ""
    if not words and not verbs:
        return route.path
    return f"{before}{{{found[1]}:{not_words}{not_verbs}[^/]+}}"


def _words_in_its_place(before: str, routes: Collection[Route]) -> Iterator[str]:
    for other in routes:
        if other.path.startswith(before) and _WORD.fullmatch(other.path[len(before) :]):
            yield other.path[len(before) :]


def _verbs_behind(path: str, routes: Collection[Route]) -> Iterator[str]:
    """What may stand behind a colon after the whole path."""
    for other in routes:
        if not other.path.startswith(f"{path}:"):
            continue
        verb = other.path[len(path) + 1 :]
        if _WORD.fullmatch(verb):
            yield verb
        elif (named := _LAST.fullmatch(verb)) is not None:
            yield from _literals(other, named[1])


def _literals(route: Route, name: str) -> tuple[str, ...]:
    """The words that a parameter may be."""
    information = inspect.type_info(route.parameters)
    assert isinstance(information, inspect.StructType)
    (field,) = [field.type for field in information.fields if field.name == name]
    return tuple(str(each) for each in field.values) if isinstance(field, inspect.LiteralType) else ()
