"""`python -m kettle_services.master`: wiring only."""

from functools import partial

from kettle.runtime import EXIT_CLEAN, run
from kettle_services.master.lifecycle import STOP_S, serve
from kettle_services.master.self_restart import SelfRestart
from kettle_services.master.settings import MasterSettings
from kettle_services.master.zygote.made import make_zygote


def main() -> int:
    zygote = make_zygote()  # while there is nothing that a fork would take along
    succession = SelfRestart()
    # No uvloop: a handful of processes and a signal of life from each per second need none.
    status = run(
        "master",
        MasterSettings,
        partial(serve, succession=succession, zygote=zygote),
        uvloop=False,
        drain=STOP_S,
    )
    if status == EXIT_CLEAN:
        succession.take_place()
    return status


if __name__ == "__main__":
    raise SystemExit(main())
