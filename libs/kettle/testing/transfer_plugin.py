#!/usr/bin/env python3
"""
A file-transfer plugin of a site, as HTCondor's protocol wants it, that also behaves badly when its URL says so.

    good://PATH           copies the file PATH of this machine; an upload copies to it
    good://PATH?hang      does not come back
    good://PATH?garbage   ends with success and an answer that is none
    good://PATH?silent    ends with success and no answer
    good://PATH?lie       says that it has moved the file, and has not
    good://PATH?fail      ends with exit code 3 and a sentence
    good://PATH?crash     is killed by a signal
    good://PATH?leave     copies, and leaves a process behind whose number is in PATH.pid

It stands alone: jobs' accounts run it with the machine's Python, and know nothing of Kettle.
"""

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

METHODS = "good,fine"
_STRING = r'"((?:[^"\\]|\\.)*)"'


def main(arguments: list[str]) -> int:
    """Be the plugin; its exit code."""
    if arguments == ["-classad"]:
        sys.stdout.write(
            'MultipleFileSupport = true\nPluginType = "FileTransfer"\nPluginVersion = "0.1"\n'
            f'ProtocolVersion = 2\nSupportedMethods = "{METHODS}"\n'
        )
        return 0
    question = Path(arguments[arguments.index("-infile") + 1]).read_text(encoding="utf-8")
    answer = Path(arguments[arguments.index("-outfile") + 1])
    answers: list[str] = []
    status = 0
    for url, path in re.findall(rf"Url = {_STRING}; LocalFileName = {_STRING}", question):
        status = max(status, _move(url, path, answers, upload="-upload" in arguments))
    answer.write_text("".join(answers), encoding="utf-8")
    return status


def _move(url: str, path: str, answers: list[str], *, upload: bool) -> int:
    place, _, behaviour = url.partition("://")[2].partition("?")
    match behaviour:
        case "hang":
            time.sleep(3600)
        case "garbage":
            answers.append("I did my best ]]")
            return 0
        case "silent":
            return 0
        case "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "fail":
            answers.append(
                f'[ TransferSuccess = false; TransferUrl = "{url}"; TransferError = "the archive is on strike" ]'
            )
            return 3
        case "leave":
            left = subprocess.Popen(["/bin/sleep", "3600"], start_new_session=True)
            Path(f"{place}.pid").write_text(str(left.pid), encoding="ascii")
        case _:
            pass
    if behaviour != "lie":
        source, target = (path, place) if upload else (place, path)
        try:
            shutil.copyfile(source, target)
        except OSError as error:
            answers.append(
                f'[ TransferSuccess = false; TransferUrl = "{url}"; TransferError = "{error.strerror}" ]'
            )
            return 1
    size = Path(path).stat().st_size if behaviour != "lie" else 1000
    answers.append(
        f'[ TransferSuccess = true; TransferUrl = "{url}"; TransferFileName = "{path}"; '
        f"TransferFileBytes = {size}; TransferTotalBytes = {size} ]"
    )
    return 0


def install(directory: Path, name: str = "good_plugin") -> Path:
    """Put the plugin where every account can run it."""
    target = directory / name
    shutil.copyfile(__file__, target)
    target.chmod(stat.S_IRWXU | 0o055)
    return target


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
