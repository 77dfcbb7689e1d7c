"""Submit objects are written, read and expanded as HTCondor's; and their jobs are made without a pool."""

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.conformance.submit_descriptions import COUNT, drawn, lay

from kettle.bindings.ads import ClassAd
from kettle.bindings.errors import HTCondorValueError
from kettle.bindings.htcondor_v1 import Submit as First
from kettle.bindings.submit_description import Submit

from . import oracle

OURS = SimpleNamespace(Submit=Submit)
BOTH = {"executable": "/bin/$(x)", "x": "true", "+Mine": '"s"', "MY.Other": "3", "n": 3, "flag": True}
TABLE = "executable=/bin/true\nqueue a,b from (\n1,2\n3,4\n)"


ENDS = "\x0b\x0c\r\x1c\x1d\x1e\x85\u2028\u2029"
"""What ends a line elsewhere."""


def queue_set(m: Any) -> Any:
    description = m.Submit(BOTH)
    description.setQArgs("3 x in (a b)")
    return description.getQArgs()


SAME: dict[str, Callable[[Any], Any]] = {
    "text": lambda m: str(m.Submit("executable=/bin/true\nargs=$(x)\nx=3\nqueue 3")),
    "text of a dictionary": lambda m: str(m.Submit(BOTH)),
    "repr": lambda m: repr(m.Submit("executable=/bin/true\nqueue 3")),
    "keys": lambda m: [list(m.Submit(BOTH)), list(m.Submit(BOTH).items())],
    "case": lambda m: [m.Submit(BOTH)["EXECUTABLE"], m.Submit(BOTH)["my.mine"], m.Submit(BOTH).get("nope")],
    "missing": lambda m: m.Submit(BOTH)["nope"],
    "no text": lambda m: m.Submit({"a": None}),
    "a path": lambda m: m.Submit({"iwd": Path("/tmp/x")})["iwd"],
    "a list": lambda m: m.Submit({"a": [1]}),
    "a line break": lambda m: m.Submit({"a": "x\ny"}),
    "no description": lambda m: m.Submit(3),
    "no assignment": lambda m: m.Submit("executable"),
    "nothing": lambda m: [str(m.Submit()), m.Submit().getQArgs()],
    "queue": lambda m: m.Submit("executable=/bin/true\nqueue 3").getQArgs(),
    "queue set": queue_set,
    "keywords": lambda m: str(m.Submit(executable="/bin/true")),
    "items of a table": lambda m: list(m.Submit(TABLE).itemdata()),
    "items of a list": lambda m: list(m.Submit("executable=/bin/true\nqueue a in (x,y)").itemdata()),
    "items without a name": lambda m: list(m.Submit("executable=/bin/true\nqueue in (x,y)").itemdata()),
    "no items": lambda m: m.Submit("executable=/bin/true\nqueue 3").itemdata(),
    "expanded": lambda m: m.Submit(BOTH).expand("executable"),
    "expanded default": lambda m: m.Submit({"a": "$(x:y)$(ProcId)"}).expand("a"),
    "expanded, missing": lambda m: m.Submit(BOTH).expand("nope"),
    "conditions": lambda m: str(m.Submit("# c\na = 1\n\n+Foo = 3\nif true\nb=2\nelse\nb=3\nendif\nqueue")),
    "continued": lambda m: str(m.Submit("a = 1 \\\n  2\nqueue")),
    "commented out": lambda m: [
        list(m.Submit(text).items())
        for text in ("a = 1 \\\n  # two \\\n 3\nb = 2\nqueue", "a = 1 \\\n#x\\\n#y\\\n  5\nqueue")
    ],
    "ends of lines": lambda m: [list(m.Submit(f"a = x{end}b = 3\r\nqueue").items()) for end in ENDS],
    "method": lambda m: m.Submit(BOTH).getSubmitMethod(),
    "credentials": lambda m: m.Submit(BOTH).issue_credentials(),
}


def outcome(call: Callable[[Any], Any], module: Any) -> Any:
    try:
        return call(module)
    except KeyError:
        return KeyError
    except TypeError:
        return TypeError
    except ValueError:
        return ValueError


@oracle.needed
@pytest.mark.parametrize("call", SAME.values(), ids=SAME.keys())
def test_a_call_has_the_outcome_that_it_has_in_htcondor(call: Callable[[Any], Any]) -> None:
    assert outcome(call, oracle.module("htcondor2")) == outcome(call, OURS)


def read(module: Any, text: str) -> list[Any]:
    """
    What it says, the first line of its queue statement, and its items; None for those if they cannot be read.
    """
    description = module.Submit(text)
    said = sorted((name.lower(), value) for name, value in description.items())
    try:
        items = description.itemdata()
    except ValueError:
        items = None
    return [said, description.getQArgs().split("\n")[0].strip(), None if items is None else list(items)]


_OTHER_ITEMS = re.compile(r"\[.*:.*\]|\[1\]|\n[^\n]*[^\n)\s][^\n)]*\)\n|\n\n")
"""
Descriptions whose items HTCondor's bindings do not give as condor_submit queues them: sliced ones (they give all), a list
that ends with ) at the end of an item, and lines that say nothing (they refuse both).
"""


@oracle.needed
def test_drawn_descriptions_are_read_as_htcondor_reads_them(tmp_path: Path) -> None:
    """Three hundred, over all forms: names, values, the queue statement and its items."""
    lay(tmp_path)
    compared = 0
    with contextlib.chdir(tmp_path):
        for text in map(drawn, range(COUNT)):
            theirs, ours = (read(module, text) for module in (oracle.module("htcondor2"), OURS))
            assert theirs[:2] == ours[:2], text
            queue = text[re.search(r"(?im)^queue", text).start() :]  # type: ignore[union-attr]
            if not _OTHER_ITEMS.search(queue):
                assert theirs[2] == ours[2], text
                compared += ours[2] is not None
    assert compared > COUNT // 3


def test_values_are_texts_numbers_paths_and_ads(tmp_path: Path) -> None:
    """And a value of several lines stays one."""
    said = dict(Submit({"iwd": tmp_path, "n": 3, "MY.ad": ClassAd({"a": 1})}))
    assert {"iwd": str(tmp_path), "n": "3", "MY.ad": "[ a = 1 ]"} == said
    text = "long @=x\none\n two\n@x\nqueue\n"
    assert {"long": "one\n two"} == dict(Submit(text)) == dict(Submit(str(Submit(text))))


@pytest.mark.parametrize("end", [*ENDS, "\\"])
def test_a_value_is_one_value_whatever_is_in_it(end: str) -> None:
    """Nobody whose text is a value says anything else of the job, or of who submits it."""
    description = Submit({
        "executable": "/bin/echo",
        "arguments": f"a{end}include : /bin/echo +Foo=7 |{end}",
        "priority": "3",
    })  # fmt: skip
    (job,) = description.jobs(1)
    between = " " if end == "\r" else end
    args = f"a{between}include : /bin/echo +Foo=7 |{end}".strip()
    assert (args, 3) == (job["Args"], job["JobPrio"])
    assert "Foo" not in job


def test_a_description_with_items_reads_back_as_itself() -> None:
    once = Submit(TABLE)
    again = Submit(str(once))
    assert (
        list(once.itemdata() or ())
        == list(again.itemdata() or ())
        == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]
    )
    assert str(once) == str(again)


def test_jobs_are_made_without_a_pool() -> None:
    """
    Of a queue statement, of a number, of dictionaries and of texts; with numbers where they are asked for.
    """
    description = First(
        {"executable": "/bin/true", "arguments": b"$(a) $(ClusterId).$(ProcId)", "log": "$(cluster).log"}
    )
    jobs = list(description.jobs(2, iter([{"a": "x"}, {"a": "#y"}]), clusterid=77, owner="ann"))
    assert [(77, proc, "ann") for proc in range(4)] == [
        (j["ClusterId"], j["ProcId"], j["Owner"]) for j in jobs
    ]
    assert ["x 77.0", "x 77.1", "#y 77.2", "#y 77.3"] == [
        job.get("Args", job.get("Arguments")) for job in jobs
    ]
    assert jobs[0]["UserLog"].endswith("/77.log")
    description.setQArgs("a, b from table")
    described = list(description.jobs(itemdata=["1 2 3", "4,5"]))
    assert ["1 1.0", "4 1.1"] == [job.get("Args", job.get("Arguments")) for job in described]


def test_names_that_are_no_commands_are_tolerated() -> None:
    """As HTCondor takes them: programs keep what they like in their descriptions."""
    (job,) = Submit({"executable": "/bin/true", "no_such_command": "x", "submit_event_notes": "n"}).jobs()
    assert "/bin/true" == job["Cmd"]


def test_what_cannot_be_submitted_is_refused_in_words() -> None:
    with pytest.raises(HTCondorValueError, match="executable"):
        list(Submit({"arguments": "1"}).jobs())
    with pytest.raises(HTCondorValueError, match="no items"):
        list(Submit({"executable": "/bin/true"}).jobs(itemdata=[]))
    with pytest.raises(HTCondorValueError, match="item 1 has b"):
        list(Submit({"executable": "/bin/true"}).jobs(itemdata=[{"a": 1}, {"b": 2}]))
    assert None is Submit({"executable": "/bin/true"}).issue_credentials()


def test_a_dag_becomes_the_description_of_its_job(tmp_path: Path) -> None:
    """As condor_submit_dag writes it, with options by HTCondor's names; the file is there for others, too."""
    dag = tmp_path / "x.dag"
    dag.write_text("JOB a a.sub\n")
    found = Submit.from_dag(str(dag), {"MaxIdle": 7, "DagmanPath": "/opt/condor_dagman"})
    assert ("scheduler", "/opt/condor_dagman") == (found["universe"], found["executable"])
    assert f"-Dag {dag} -MaxIdle 7" in found["arguments"]
    assert (tmp_path / "x.dag.condor.sub").exists()
    with pytest.raises(HTCondorValueError, match="already exists"):
        Submit.from_dag(str(dag), {"DagmanPath": "/opt/condor_dagman"})
    Submit.from_dag(str(dag), {"force": True, "DagmanPath": "/opt/condor_dagman"})


def test_what_is_no_dag_is_refused(tmp_path: Path) -> None:
    """A file that is not there, one that makes no sense, and an option that nobody has."""
    with pytest.raises(FileNotFoundError):
        Submit.from_dag(str(tmp_path / "x.dag"))
    (tmp_path / "x.dag").write_text("JOB a\n")
    with pytest.raises(HTCondorValueError, match=r"x\.dag, line 1"):
        Submit.from_dag(str(tmp_path / "x.dag"), {"DagmanPath": "/opt/condor_dagman"})
    assert "maxidle" in Submit.from_dag_options()
    with pytest.raises(HTCondorValueError, match="there is no option Colour"):
        Submit.from_dag(str(tmp_path / "x.dag"), {"Colour": 1})
