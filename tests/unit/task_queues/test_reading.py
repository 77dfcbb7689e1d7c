"""Tasks from files, and what is wrong with one is told with its line."""

import pytest

from kettle.task_queues.reading import TasksError, read_tasks


def test_each_line_is_a_task_but_for_empty_ones_and_remarks() -> None:
    """Lines of other systems end with a carriage return."""
    data = b"# remark\n./fit 1\n\n  \n./fit '2 3'\r\n./fit 4"
    assert [b"./fit 1", b"./fit '2 3'", b"./fit 4"] == read_tasks(data, "f")


def test_lines_of_json_are_texts_or_lists_of_words() -> None:
    """Words are quoted for the shell; a text may have several lines."""
    data = b'["./fit", "a b", "$x"]\n"one\\ntwo"\n'
    assert [b"./fit 'a b' '$x'", b"one\ntwo"] == read_tasks(data, "f", as_json=True)


@pytest.mark.parametrize(
    ("data", "as_json", "said"),
    [
        (b"ok\na\0b", False, "f:2: there is a NUL character"),
        (b"ok\n\n\xff", False, "f:3: byte 1 of the line is no UTF-8"),
        (b"x" * 65_537, False, "f:1: the command has 65,537 bytes"),
        (b"# nothing\n", False, "f has no tasks"),
        (b"", True, "f has no tasks"),
        (b'"a"\n{"b": 1}', True, "f:2: a task is a text"),
        (b"[]", True, "f:1: a task is a text"),
        (b'["a", 1]', True, "f:1: a task is a text"),
        (b'"a', True, "f:1: that is no JSON"),
        (b'" "', True, "f:1: the command is empty"),
    ],
)
def test_what_is_no_task_is_told_with_its_line(data: bytes, as_json: bool, said: str) -> None:
    """Nothing is sent of a file that has such a line."""
    with pytest.raises(TasksError) as error:
        read_tasks(data, "f", as_json=as_json)
    assert str(error.value).startswith(said)
