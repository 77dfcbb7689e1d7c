"""`kettle run shadow`."""

from kettle.runtime import run
from kettle_services.shadow.settings import ShadowSettings
from kettle_services.shadow.wiring import serve


def main() -> int:
    """Be a shadow."""
    return run("shadow", ShadowSettings, serve)


if __name__ == "__main__":
    raise SystemExit(main())
