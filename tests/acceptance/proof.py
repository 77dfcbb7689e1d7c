"""
What the scripts of this directory share: each drives a client of HTCondor, unmodified, with the condor_* commands of BIN_DIR.

    SCRIPT BIN_DIR [--timeout S] [--workdir DIR]

The last line is `PROVEN: ...` (exit code 0) or `FAILED: ...` (1; 2 if the client is not installed).
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
import traceback


def prove(drive, needed=()):
    """Run `drive(options)` in the work directory with the commands first on PATH; it returns what has been seen to work."""
    options = _options(drive.__doc__)
    places = [os.path.abspath(options.bin_dir), os.path.dirname(sys.executable), os.environ.get("PATH", "")]
    os.environ["PATH"] = os.pathsep.join(places)
    if missing := [command for command in needed if not shutil.which(command)]:
        _end(1, f"FAILED: not on PATH: {', '.join(missing)}")
    work = os.path.abspath(options.workdir or tempfile.mkdtemp(prefix="client-"))
    os.makedirs(work, exist_ok=True)
    os.chdir(work)
    try:
        line = drive(options)
    except ModuleNotFoundError as error:
        _end(2, f"FAILED: {error}; run this with the client installed")
    except BaseException as error:
        traceback.print_exc()
        print(f"(files kept in {work})")
        _end(1, f"FAILED: {type(error).__name__}: {' '.join(str(error).split())[:600]}")
    if not options.workdir:
        shutil.rmtree(work, ignore_errors=True)
    _end(0, f"PROVEN: {line}")


def until(what, check, timeout, pause=0.25):
    """Ask until the answer is true; the answer."""
    end = time.monotonic() + timeout
    while not (value := check()):
        if time.monotonic() > end:
            raise TimeoutError(f"{what} did not happen in {timeout:.0f} s")
        time.sleep(pause)
    return value


def _options(about):
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("bin_dir", help="directory with condor_submit & co; goes first on PATH")
    parser.add_argument("--timeout", type=float, default=180, help="seconds for each wait")
    parser.add_argument("--workdir", help="directory seen by submit and execute side (default: a temporary one)")
    return parser.parse_args()


def _end(status, line):
    print(line)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # no exit handlers of the client after the last line
