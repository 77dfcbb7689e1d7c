import subprocess
import sys

HEAD = "import gc, os, sys\nfrom kettle.client.connections import short_process as short\n"


def run(code: str) -> tuple[int, str]:
    """The status and the output of a program that begins as a command does."""
    done = subprocess.run(  # noqa: PLW1510 - the status is what we look at
        [sys.executable, "-P", "-c", HEAD + code], stdout=subprocess.PIPE, text=True
    )
    return done.returncode, done.stdout


def test_a_start_loads_no_more_than_it_must() -> None:
    """Messages are checked as ever, and who wants `typing_extensions` later on gets it."""
    code = """
short.defer_loading()
import msgspec
print(gc.isenabled(), "typing_extensions" in sys.modules)
from typing import Annotated
class Half(msgspec.Struct):
    n: Annotated[int, msgspec.Meta(ge=0)] = 0
try:
    msgspec.json.decode(b'{"n": -1}', type=Half)
except msgspec.ValidationError as error:
    print(error)
import typing_extensions
print(typing_extensions.get_type_hints(Half))
short.resume_collection()
print(gc.isenabled(), gc.get_freeze_count() > 0)
"""
    status, told = run(code)
    assert 0 == status
    assert [
        "False False",
        "Expected `int` >= 0 - at `$.n`",
        "{'n': <class 'int'>}",
        "True True",
    ] == told.splitlines()


def test_an_end_is_at_once_and_nothing_is_lost() -> None:
    assert (7, "said\n") == run(
        "class Late:\n    def __del__(self): print('late')\nlate = Late()\nprint('said')\nshort.exit_quickly(7)"
    )


def test_an_end_waits_for_threads() -> None:
    code = "import threading\nthreading.Thread(target=lambda: print('done')).start()\nshort.exit_quickly(3)"
    assert (3, "done\n") == run(code)


def test_an_end_runs_what_loggers_left() -> None:
    code = "import atexit, logging\natexit.register(print, 'shut')\nshort.exit_quickly(0)"
    assert (0, "shut\n") == run(code)


def test_an_output_that_nobody_can_write_does_not_change_the_status() -> None:
    assert (5, "") == run("sys.stdout.close()\nshort.exit_quickly(5)")
