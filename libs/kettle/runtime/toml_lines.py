"""Where in a TOML file something stands, so that a refusal can name the line."""

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

Keys = tuple[str, ...]


class TomlLines:
    """The places of a text's keys."""

    def __init__(self, text: str) -> None:
        self._first: Final[dict[Keys, int]] = {}
        self._given: Final[list[int]] = []
        self._end: Final = text.count("\n") + 2
        for number, keys in _lines(text):
            if keys:
                self._first.setdefault(keys, number)
                self._given.append(number)

    def line_of(self, keys: Sequence[str]) -> int | None:
        """
        The number of the line in which a key, or the table of it, is given; that of the nearest table around it, else None.

        A number among the keys is the place in a list of tables, from 0 on. It looks at the lines as they begin: what stands
        in a text of several lines may mislead it.
        """
        for depth in range(len(keys), 0, -1):
            if (line := self._first.get(tuple(keys[:depth]))) is not None:
                return line
        return None

    def lines_of(self, keys: Sequence[str]) -> range | None:
        """
        The numbers of the lines over which a value goes, up to where the next key is given; of an inline table around it if
        it is in one. None: it is not there.
        """
        for depth in range(len(keys), 1, -1):
            if (line := self._first.get(tuple(keys[:depth]))) is not None:
                return range(line, min((each for each in self._given if each > line), default=self._end))
        return None


def _lines(text: str) -> Iterator[tuple[int, Keys]]:
    """What each line gives; the head of a table in a list gives the list and the table."""
    table: Keys = ()
    seen: Counter[Keys] = Counter()
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if bare.startswith("[["):
            *around, last = _keys(bare) or ("",)
            of = (*_within(around, seen), last)
            yield number, of
            table = (*of, str(seen[of]))
            seen[of] += 1
            yield number, table
        elif bare.startswith("["):
            table = _within(_keys(bare), seen)
            yield number, table
        elif "=" in bare and not bare.startswith("#"):
            yield number, (*table, *_keys(f"{bare.partition('=')[0]} = 0"))


def _within(keys: Sequence[str], lists: Mapping[Keys, int]) -> Keys:
    """The keys with the place in each list of tables on the way: a head means the last table so far."""
    found: Keys = ()
    for key in keys:
        found = (*found, key)
        if found in lists:
            found = (*found, str(lists[found] - 1))
    return found


def _keys(line: str) -> Keys:
    try:
        value: object = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()
    found: list[str] = []
    while isinstance(value, dict | list) and value:
        if isinstance(value, list):
            value = cast("list[object]", value)[0]
        else:
            key, value = next(iter(cast("dict[str, object]", value).items()))
            found.append(key)
    return tuple(found)
