"""`kettle run accounting`."""

from kettle.runtime import run
from kettle_services.accounting.settings import AccountingSettings
from kettle_services.accounting.wiring import serve


def main() -> int:
    """Be accounting."""
    return run("accounting", AccountingSettings, serve)


if __name__ == "__main__":
    raise SystemExit(main())
