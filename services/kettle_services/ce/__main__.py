"""`kettle run ce`."""

from kettle.runtime import run
from kettle_services.ce.settings import CeSettings
from kettle_services.ce.wiring import serve


def main() -> int:
    """Be a compute entrypoint."""
    return run("ce", CeSettings, serve)


if __name__ == "__main__":
    raise SystemExit(main())
