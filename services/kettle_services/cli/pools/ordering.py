"""`kettle pool pause`, `resume`, `drain`, `retire` and `order`."""

import argparse

from kettle_services.cli.errors import UsageError
from kettle_services.cli.options import with_pool
from kettle_services.cli.output.screen import Screen


def pause(arguments: argparse.Namespace, screen: Screen) -> int:
    """Make no more machines."""
    with_pool(arguments, lambda client: client.worker_pools.pause(arguments.pool, reason=arguments.reason))
    return screen.done(
        f"The pool {arguments.pool} makes no more machines until: kettle pool resume {arguments.pool}"
    )


def resume(arguments: argparse.Namespace, screen: Screen) -> int:
    """Make machines again."""
    with_pool(arguments, lambda client: client.worker_pools.resume(arguments.pool))
    return screen.done(f"The pool {arguments.pool} makes machines again, and what was closed is tried.")


def drain(arguments: argparse.Namespace, screen: Screen) -> int:
    """Have machines go when their jobs have ended."""
    if arguments.pool and arguments.lease:
        raise UsageError(
            f"all machines of {arguments.pool}, or only {arguments.lease}? Name the pool, or the machine with --lease"
        )
    if not arguments.pool and not arguments.lease:
        raise UsageError("name a pool, or one machine with --lease")
    if arguments.lease:
        with_pool(
            arguments,
            lambda client: client.worker_pools.give_up(
                arguments.lease, reason=arguments.reason, force=arguments.force
            ),
        )
        when = "now" if arguments.force else "when its jobs have ended"
        return screen.done(f"{arguments.lease} goes {when}.")
    if arguments.force:
        raise UsageError("--force is for one machine: name it with --lease")
    with_pool(
        arguments,
        lambda client: client.worker_pools.pause(arguments.pool, reason=arguments.reason, drain=True),
    )
    return screen.done(
        f"The machines of {arguments.pool} go when their jobs have ended, and none comes until: kettle pool resume {arguments.pool}"
    )


def retire(arguments: argparse.Namespace, screen: Screen) -> int:
    """Give a pool up."""
    with_pool(arguments, lambda client: client.worker_pools.retire(arguments.pool))
    return screen.done(f"The pool {arguments.pool} is given up; its machines go when their jobs have ended.")


def order(arguments: argparse.Namespace, screen: Screen) -> int:
    """Have one machine more."""
    lease = with_pool(arguments, lambda client: client.worker_pools.order(arguments.pool, arguments.offer))
    if screen.as_json:
        screen.json({"lease": lease})
        return 0
    return screen.done(f"{lease} is ordered; see how far it is with: kettle pool lease {lease}")
