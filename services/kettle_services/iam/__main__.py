"""`kettle run iam`."""

from kettle.runtime import run
from kettle_services.iam.settings import IamSettings
from kettle_services.iam.wiring import serve


def main() -> int:
    """Be an iam."""
    return run("iam", IamSettings, serve)


if __name__ == "__main__":
    raise SystemExit(main())
