"""Files with documents."""

from pathlib import Path
from typing import Final

from kettle_services.cli.errors import UsageError
from kettle_services.cli.standard_input import standard_input

_YAML: Final = (".yaml", ".yml")


def text_of(name: str) -> bytes:
    """The text of a document; raises UsageError: it cannot be read, or is YAML."""
    if name == "-":
        return standard_input().read()
    if name.endswith(_YAML):
        raise UsageError(
            f"{name} is YAML, and documents are read as JSON, as which the prominence client sends them"
        )
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}") from error
