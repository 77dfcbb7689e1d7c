"""
`python -m kettle.master`: wiring only.
"""

from kettle.master.serve import STOP_S, serve
from kettle.master.settings import MasterSettings
from kettle.runtime import run


def main() -> int:
    # No uvloop: a handful of processes and a signal of life from each per second need none.
    return run("master", MasterSettings, serve, uvloop=False, drain=STOP_S)


if __name__ == "__main__":
    raise SystemExit(main())
