"""Where in a TOML file something stands, so that a refusal can name the line."""

import tomllib
from collections.abc import Sequence
from typing import cast


def line_of(text: str, keys: Sequence[str]) -> int | None:
    """
    The number of the line in which a key, or the table of it, is given; that of the nearest table around it, else None.

    It looks at the lines as they begin: what stands in a text of several lines may mislead it.
    """
    table: tuple[str, ...] = ()
    best: tuple[int, int] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if bare.startswith("["):
            table = found = _keys(bare)
        elif "=" in bare and not bare.startswith("#"):
            found = (*table, *_keys(f"{bare.partition('=')[0]} = 0"))
        else:
            continue
        depth = len(found)
        if 0 < depth <= len(keys) and tuple(keys[:depth]) == found and (best is None or depth > best[0]):
            best = depth, number
    return best[1] if best else None


def _keys(line: str) -> tuple[str, ...]:
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
