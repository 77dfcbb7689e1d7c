"""`kettle run scaler`."""

from kettle.runtime import run
from kettle_services.scaler.settings import ScalerSettings
from kettle_services.scaler.wiring import serve


def main() -> int:
    """Be a scaler."""
    return run("scaler", ScalerSettings, serve)


if __name__ == "__main__":
    raise SystemExit(main())
