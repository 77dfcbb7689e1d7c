"""`kettle run startd`."""

from kettle.runtime import open_file_limit, run
from kettle_services.startd.settings import StartdSettings
from kettle_services.startd.wiring import serve

DRAIN_S = 30.0


def main() -> int:
    """Be a startd."""
    open_file_limit.allow_many()
    return run("startd", StartdSettings, serve, drain=DRAIN_S)


if __name__ == "__main__":
    raise SystemExit(main())
