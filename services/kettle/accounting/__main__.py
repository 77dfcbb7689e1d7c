"""`kettle run accounting`."""

from kettle.accounting.settings import AccountingSettings
from kettle.accounting.wiring import serve
from kettle.runtime import run


def main() -> int:
    """Be accounting."""
    return run("accounting", AccountingSettings, serve)


if __name__ == "__main__":
    raise SystemExit(main())
