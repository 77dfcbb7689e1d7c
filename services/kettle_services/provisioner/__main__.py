"""`kettle run provisioner`."""

from kettle.runtime import run
from kettle_services.provisioner.settings import ProvisionerSettings
from kettle_services.provisioner.wiring import serve


def main() -> int:
    """Be a provisioner."""
    return run("provisioner", ProvisionerSettings, serve)


if __name__ == "__main__":
    raise SystemExit(main())
