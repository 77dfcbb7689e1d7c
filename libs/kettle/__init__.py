"""
Kettle's libraries: what services and the thin client are made of.

An import shows its layer: `kettle_wire` is the contract between processes, `kettle` the libraries, `kettle_services` the services.
"""

from typing import Final

VERSION: Final = "0.1.0"
"""Of all that is installed together; the one in pyproject.toml, which `tests/packaging` holds it to."""
