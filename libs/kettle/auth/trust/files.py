"""The files that members show to the server: a key that is made once, and what is said of it now."""

from collections.abc import Callable
from pathlib import Path

from kettle.auth.private_files import private_directory, write_private
from kettle.auth.trust.keys import KeyPair, Kind, SeedError
from kettle.bus.credentials import Credential


def key_in(path: Path) -> KeyPair | None:
    """The key in such a file; None if there is no file.  Raises SeedError if it holds none."""
    try:
        return KeyPair(Credential.read(path).seed)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise SeedError(f"{path}: {error}; remove the file to have a new one made") from error


def write(path: Path, state: Callable[[str], str]) -> Path:
    """
    Write a file again: with the key that it has, or a new one, and what `state` says of that one's public half.
    """
    key = key_in(path) or KeyPair.new(Kind.USER)
    private_directory(path.parent)
    return write_private(path, Credential(key.seed, state(key.public)).text())
