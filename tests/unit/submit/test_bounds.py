"""Descriptions that grow without bound are refused with a sentence, in little time and memory."""

import time
from pathlib import Path

import pytest

from kettle.submit import PlacelessError, Site, SubmitError, expand, parse
from kettle.submit.includes import printed

HEAD = "executable = /bin/true\n"
SITE = Site(arch="X86_64", opsys="LINUX", file_system_domain="example.org", check_files=False)


def refused(text: str, tmp_path: Path) -> str:
    with pytest.raises(SubmitError) as caught:
        expand(parse(HEAD + text, source="job.sub", cwd=tmp_path, environ={"PATH": "/bin:/usr/bin"}), SITE)
    return str(caught.value)


def doubled(first: str, depth: int = 60) -> str:
    lines = [f"m0 = {first}", *(f"m{n + 1} = $(m{n})$(m{n})" for n in range(depth))]
    return "\n".join([*lines, f"arguments = $(m{depth})", "queue"]) + "\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (doubled("long text" * 100), "becomes longer than 4,194,304 characters"),
        (doubled("$(nothing)"), "more than 100,000 macros would be put into one text"),
        ("m = x\n" + "m = $(m)$(m)\n" * 40 + "arguments = $(m)\nqueue\n", "m becomes longer than 4,194,304 characters"),
        ("queue x from yes |\n", "'yes' prints more than 64 MiB"),
        ("queue x from /dev/zero\n", "/dev/zero has more than 64 MiB"),
        ("include : /dev/zero\nqueue\n", "/dev/zero has more than 64 MiB"),
        ("include : yes |\nqueue\n", "'yes' prints more than 64 MiB"),
        ("queue x from seq 1000002 |\n", "cannot queue 1000002 jobs at once"),
        ("arguments = \ud800\nqueue\n", "not text in UTF-8"),
        ("queue x in (a \udfff)\n", "not text in UTF-8"),
    ],
)  # fmt: skip
def test_what_grows_without_bound_is_refused(text: str, sentence: str, tmp_path: Path) -> None:
    """With the line, and the limit."""
    began = time.process_time()
    said = refused(text, tmp_path)
    assert sentence in said
    assert said.startswith("job.sub, line ")
    assert time.process_time() - began < 10


def test_a_program_that_prints_nothing_is_ended(tmp_path: Path) -> None:
    """After a time, with all that it has started."""
    with pytest.raises(PlacelessError, match=r"was ended: it took more than 0\.2 seconds"):
        printed("sh -c 'sleep 1000 & wait'", cwd=tmp_path, environ={"PATH": "/bin:/usr/bin"}, longest=0.2)


def test_a_program_that_fails_is_quoted(tmp_path: Path) -> None:
    """With what it said, and its exit code."""
    said = refused("queue x from sh -c 'echo why >&2; exit 3' |\n", tmp_path)
    assert "failed with exit code 3: why" in said


def test_what_is_given_beside_the_text_is_text(tmp_path: Path) -> None:
    """It is refused with its name."""
    with pytest.raises(SubmitError, match="command line: the value of word is not text in UTF-8"):
        parse(f"{HEAD}queue\n", source="job.sub", cwd=tmp_path, environ={}, given={"word": "\udcff"})


def test_paths_start_in_the_jobs_directory(tmp_path: Path) -> None:
    """Which may itself be named with their help."""
    text = f"{HEAD}initialdir = $Ff(sub)\narguments = $Ff(x) $Ff(/a/../b)\nqueue\n"
    ad = expand(parse(text, source="job.sub", cwd=tmp_path, environ={}), SITE).ad
    assert (f"{tmp_path}/sub", f"{tmp_path}/sub/x /a/../b") == (ad["Iwd"], ad["Args"])
