"""
Kettle's libraries: what services and the thin client are made of.

An import shows its layer: `kettle_wire` is the contract between processes, `kettle` the libraries, `kettle_services` the services.
"""

VERSION = "0.2.0"
"""
Of all that is installed together; the one in pyproject.toml, which `tests/packaging` holds it to.

Not `Final`: what is imported here is loaded before every command, and `typing` takes longer than a command that is forked.
"""
