"""A description that names a file with tasks in place of an executable."""

from pathlib import Path

import pytest

from kettle.submit import SubmitError, expand, parse
from kettle_wire.ads import Ad

from .test_refusals import SITE

SOUND = '{"tasks":[{"cmd":["a","b"]},{"image":"docker://c"},{"image":"https://h/d.sif?e"},{"image":"f.tar"}]}'


def submitted(place: Path, lines: str, tasks: str = SOUND) -> Ad:
    """The ad of its first job."""
    (place / "tasks.json").write_text(tasks)
    return expand(parse(f"{lines}\nqueue\n", source="job.sub", cwd=place, environ={}), SITE).job(0)


def test_the_file_goes_into_the_ad(tmp_path: Path) -> None:
    """
    As it is; the job runs where all these kinds of images do, in a sandbox, and lists show its first program.
    """
    ad = submitted(tmp_path, "tasks = tasks.json")

    assert (SOUND, "a", False, "YES") == (
        ad["KettleTasks"],
        ad["Cmd"],
        ad["TransferExecutable"],
        ad["ShouldTransferFiles"],
    )
    wanted = str(ad["Requirements"])
    assert all(name in wanted for name in ("HasContainer", "HasDockerURL", "HasSIF", "HasSandboxImage"))
    assert "HasContainer" not in str(submitted(tmp_path, "tasks = tasks.json", '{"tasks":[{"cmd":["a"]}]}'))


@pytest.mark.parametrize(
    ("lines", "tasks", "why"),
    [
        ("tasks = none.json", SOUND, r"line 1.*none\.json cannot be read"),
        ("tasks = tasks.json", '{"tasks":[{"cmd":"a"}]}', r"line 1.*\$\.tasks\[0\]\.cmd"),
        ("tasks = tasks.json\nexecutable = /bin/true", SOUND, "remove executable, or tasks"),
        ("tasks = tasks.json\nshould_transfer_files = no", SOUND, "write YES"),
        ("tasks = tasks.$(ClusterId)", SOUND, "must be known now"),
    ],
)
def test_what_cannot_be_is_refused_where_it_stands(tmp_path: Path, lines: str, tasks: str, why: str) -> None:
    """With file and line of the description, and the place in the file of the tasks."""
    with pytest.raises(SubmitError, match=why):
        submitted(tmp_path, lines, tasks)
