"""Documents in YAML are the JSON that they stand for, and nothing else."""

import json
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.prominence.faults import DocumentRefused
from kettle.prominence.job_documents import read_job
from kettle.prominence.yaml_documents import json_of

JOB = """\
# a comment
name: fit
resources: {cpus: 1, memory: 1, disk: 1, nodes: 1, walltime: 10}
labels: {country: no, version: '1', digits: 010}
tasks:
- image: busybox
  runtime: singularity
  cmd: |
    echo one
    echo two
"""
TEXTS = st.text(st.characters(codec="latin-1", exclude_categories=["Cc"]))
WORDS: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def test_a_job_in_yaml_is_the_job() -> None:
    """Words of a text are texts, also where older YAML takes them for truth values or octal numbers."""
    document = json.loads(json_of(JOB.encode()))
    assert {"country": "no", "version": "1", "digits": "010"} == document["labels"]
    assert "echo one\necho two\n" == document["tasks"][0]["cmd"]
    assert "fit" == read_job(json_of(JOB.encode())).name


@given(WORDS)
def test_json_is_yaml(value: object) -> None:
    """What is sent as JSON under the name of YAML stays what it is."""
    text = json.dumps(value, ensure_ascii=False)
    assert value == json.loads(json_of(text.encode()))


def test_digits_stay_as_they_are_written() -> None:
    assert b'{"x":0.10000000000000000000000001,"y":[null,null,1e3]}' == json_of(
        b"x: 0.10000000000000000000000001\ny: [~, null, 1e3]\n"
    )


BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (BOMB, "line 1: &a0 is an anchor"),
        ("a: *b\n", "no YAML|an alias"),
        ("a: !!python/object/apply:os.system [x]\n", "line 1: tag:yaml.org,2002:python"),
        ("a: 1\n---\nb: 2\n", "line 2: there is a second document"),
        ("a: 1\nb: 2\na: 3\n", "line 3: the key a is there twice"),
        ("? [a]\n: 1\n", "line 1: a key has to be a word"),
        ("a: [1\nb: 2\n", "the document is no YAML: .*line 2"),
        ("[" * 200, "more than 100 levels"),
        ("", "the document is empty"),
        ("a:\n\tb: 1\n", "the document is no YAML"),
    ],
)
def test_what_json_cannot_say_is_refused_with_its_line(text: str, sentence: str) -> None:
    """Above all what a few lines could make too large for the memory."""
    with pytest.raises(DocumentRefused, match=sentence):
        json_of(text.encode())


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(DocumentRefused, match="no text in UTF-8"):
        json_of(zlib.compress(b"x"))
