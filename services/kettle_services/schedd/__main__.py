"""`kettle run schedd`."""

from kettle.runtime import run
from kettle_services.schedd.settings import ScheddSettings
from kettle_services.schedd.wiring import serve


def main() -> int:
    """Be a schedd."""
    return run("schedd", ScheddSettings, serve)


if __name__ == "__main__":
    raise SystemExit(main())
