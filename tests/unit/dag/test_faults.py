"""What is wrong with a DAG file is said with its place, and all of it at once to who checks it."""

import pytest

from kettle.dag.building.options import Bounds, Options
from kettle.dag.building.parser import check, parse
from kettle.dag.faults import DagError
from kettle.dag.structure import Dag

from .dag_files import dag_of, faults_of, read_from


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("JOBB A a.sub", "'JOBB' is no command of a DAG file; did you mean JOB?"),
        ("JOB", "JOB: the name of the node is missing; its form is JOB <node> <submit description>"),
        ("JOB B", "JOB: the submit description is missing"),
        ("JOB A b.sub", "A is already a node: a.dag, line 1"),
        ("JOB child b.sub", "child is a word of the language"),
        ("JOB x+y b.sub", "x+y has a +"),
        ("JOB B b.sub DIR", "the directory behind DIR is missing"),
        ("JOB B b.sub DONNE", "'DONNE' has no meaning here; did you mean DONE?"),
        ("JOB B inner.dag.condor.sub", "a node that is a DAG is SUBDAG EXTERNAL B inner.dag"),
        ("JOB B {", "the description that begins here has no end; write } on a line of its own"),
        ("JOB B @=", "a description that begins with @= needs a word that ends it"),
        ('JOB "B b.sub', 'the quote " has no end on this line'),
        ("SUBDAG B b.dag", "the word EXTERNAL is missing"),
        ("SUBMIT-DESCRIPTION d x.sub", "a description begins with { or @=END, not with 'x.sub'"),
        ("PARENT A B", "the word CHILD is missing"),
        ("PARENT CHILD A", "no node stands before CHILD"),
        ("PARENT A CHILD", "no node stands behind CHILD"),
        ("PARENT A CHILD AA", "no node or splice is called AA; did you mean A?"),
        ("WEAK A CHILD A", "the word PARENT behind WEAK is missing"),
        ("SCRIPT A x.sh", "PRE, POST or HOLD is wanted, not 'A'"),
        ("SCRIPT", "PRE, POST or HOLD is missing"),
        ("SCRIPT PRE A", "the executable of the script is missing"),
        ("SCRIPT DEFER x 3 PRE A x.sh", "the exit code behind DEFER must be a whole number, not 'x'"),
        ("SCRIPT DEFER 3 -1 PRE A x.sh", "the number of seconds of DEFER must be a whole number from 0"),
        ("SCRIPT DEBUG f BOTH PRE A x.sh", "DEBUG takes STDOUT, STDERR or ALL, not 'BOTH'"),
        ("RETRY A", "the number of retries is missing"),
        ("RETRY A -1", "the number of retries must be a whole number from 0"),
        ("RETRY A 99999999999", "the number of retries must be a whole number from 0 to 2147483647"),
        ("RETRY A 1 UNLESS 3", "'UNLESS' has no meaning here; did you mean UNLESS-EXIT?"),
        ("RETRY A 1 UNLESS-EXIT", "the value behind UNLESS-EXIT is missing"),
        ("RETRY A 1 UNLESS-EXIT 2 3", "'3' is one word too many"),
        ("RETRY F 1", "the FINAL node F is not tried again: RETRY is for JOB and SUBDAG nodes"),
        ("ABORT-DAG-ON A", "the value that aborts the DAG is missing"),
        ("ABORT-DAG-ON A 1 RETURN 256", "the exit code behind RETURN must be a whole number from 0 to 255"),
        ("ABORT-DAG-ON F 1", "the FINAL node F cannot abort the DAG"),
        ("VARS A", 'there is no name="value"'),
        ("VARS A x", "'x' has no value; write x=\"value\""),
        ("VARS A x=", "'x' has no value"),
        ("VARS A x==1", "'x' has no value"),
        ('VARS A ="1"', "the name is missing"),
        ('VARS A queue_x="1"', "names that begin with 'queue' are statements"),
        ('VARS A +="1"', "'+' is no name of a variable"),
        ('VARS A x="1', 'the quote " has no end on this line'),
        ("PRIORITY A high", "the priority must be a whole number, not 'high'"),
        ("PRIORITY F 1", "the FINAL node F has no priority"),
        ("PRE_SKIP A 256", "the exit code must be a whole number from 0 to 255"),
        ("TOLERANCE A -1", "the number of jobs that may fail must be a whole number from 0"),
        ("TOLERANCE A %", "the number of jobs that may fail is missing"),
        ("TOLERANCE A 1 FAST", "'FAST' has no meaning here"),
        ("DONE B", "no node is called B"),
        ("SAVE_POINT_FILE ALL_NODES", "ALL_NODES cannot stand here"),
        ("SAVE_POINT_FILE F", "the FINAL node F has no save file"),
        ("CATEGORY A", "the name of the category is missing"),
        ("CATEGORY F x", "the FINAL node F belongs to no category"),
        ("MAXJOBS x", "the number of nodes is missing"),
        ("MAXJOBS x -1", "the number of nodes must be a whole number from 0"),
        ("FINAL G g.sub", "a DAG has one FINAL node, and it is F: a.dag, line 2"),
        ("PARENT A CHILD F", "the FINAL node F has no parents and no children"),
        ("SPLICE S", "the DAG file is missing"),
        ("SPLICE S s.dag", "s.dag cannot be read: No such file or directory"),
        ("SPLICE A other.dag", "A is already a node"),
        ("SPLICE S a.dag", "a.dag is read while it is being read: a.dag -> a.dag"),
        ("INCLUDE a.dag", "a.dag is read while it is being read"),
        ("INCLUDE", "the file is missing"),
        ("CONNECT S", "the name of the second splice is missing"),
        ("CONNECT S T", "no splice is called S"),
        ("PIN_IN A 0", "the number of the pin must be a whole number from 1"),
        ("PIN_OUT A", "the number of the pin is missing"),
        ("DOT", "the file is missing"),
        ("DOT g.dot UPDATED", "'UPDATED' has no meaning here; did you mean UPDATE?"),
        ("NODE_STATUS_FILE s often", "'often' has no meaning here"),
        ("JOBSTATE_LOG a b", "'b' is one word too many"),
        ("CONFIG", "the file is missing"),
        ("ENV", "SET or GET is missing"),
        ("ENV PUT x", "'PUT' has no meaning here"),
        ("ENV SET", "what is set or got is missing"),
        ("SET_JOB_ATTR x", "'x' is no attribute = expression"),
        ("REJECT", "REJECT: this file is not to be run"),
        ("REJECT it", "'it' is one word too many"),
    ],
)  # fmt: skip
def test_sentences(line: str, sentence: str) -> None:
    """Each mistake has its line, says what is wrong, and the nearest word that is known."""
    (fault,) = faults_of(f"JOB A a.sub\nFINAL F f.sub\n{line}\n")

    assert fault.startswith("a.dag, line 3: ")
    assert sentence in fault


def test_all_at_once() -> None:
    """A check tells every fault, in the order of the lines, whatever pass found it."""
    faults = faults_of("RETRY B x\nJOBS\nJOB A a.sub\nPARENT A CHILD C\nJOB A again.sub\n")

    assert [fault.partition(":")[0] for fault in faults] == [f"a.dag, line {line}" for line in (1, 2, 4, 5)]


def test_runner_stops() -> None:
    """Who runs a DAG is told the first fault."""
    with pytest.raises(DagError, match=r"a.dag, line 1: 'ONE' is no command"):
        dag_of("ONE\nTWO\n")


def test_faults_of_inner_files() -> None:
    """A fault within a spliced file has the place in that file."""
    assert faults_of("SPLICE S s.dag\n", {"s.dag": "JOB A a.sub\n\nFINAL F f.sub\n"}) == [
        "s.dag, line 3: a file that is spliced cannot have a FINAL node; it belongs into the outermost file"
    ]


def test_missing_file() -> None:
    """A DAG file that is not there has no lines."""
    assert [str(fault) for fault in check(["no.dag"], read_from({}))[1]] == [
        "no.dag: cannot be read: No such file or directory"
    ]


def test_depth() -> None:
    """Files within files are limited, so that a chain of them ends with a sentence."""
    chain = {f"{level}.dag": f"SPLICE s {level + 1}.dag\n" for level in range(200)}
    (fault,) = faults_of("SPLICE s 0.dag\n", chain)

    assert "is nested too deeply: at most 100 files within files" in fault


def test_zero_byte() -> None:
    """What is no text is refused."""
    assert faults_of("JOB A a.sub\nJOB B\0 b.sub\n") == [
        "a.dag: has a zero byte in line 2; a DAG file is text"
    ]


def test_use_dag_directory() -> None:
    """DIR and -usedagdir exclude each other."""
    (fault,) = faults_of("JOB A a.sub DIR x\n", options=Options(use_dag_directory=True))

    assert "DIR x cannot be used together with -usedagdir" in fault


def test_warnings() -> None:
    """What is strange and can be carried out is a warning."""
    dag = dag_of(
        "JOB A a.sub\nFINAL F f.sub DONE\nRETRY A 3x\nSCRIPT PRE A one.sh\nSCRIPT PRE A two.sh\n"
        'VARS A x="1"\nVARS A x="2"\nPRIORITY A 1\nPRIORITY A 2\nPRE_SKIP A 0\nDONE F\n'
    )

    assert [str(warning) for warning in dag.warnings] == [
        "a.dag, line 2: the FINAL node F cannot be done before it has run; it runs",
        "a.dag, line 3: RETRY: the number of retries is read as 3, and 'x' behind it has no meaning",
        "a.dag, line 5: the PRE script of node A takes the place of an earlier one, one.sh",
        "a.dag, line 7: the variable x of node A was '1' and becomes '2'",
        "a.dag, line 9: the priority of node A was 1 and becomes 2",
        "a.dag, line 10: PRE_SKIP: an exit code of 0 skips nothing",
        "a.dag, line 11: the FINAL node F cannot be done before it has run; it runs",
    ]
    assert (dag.nodes[0].retries, dag.nodes[0].priority) == (3, 2)


def test_only_the_names_of_the_command_line() -> None:
    """
    Several files are one DAG, each with its number in front of its names, and with ALL_NODES of its own.
    """
    files = {
        "a.dag": "JOB A a.sub\nJOB B b.sub\nPARENT A CHILD B\nRETRY ALL_NODES 1\n",
        "b.dag": "JOB A x.sub\n",
    }
    dag = parse(["a.dag", "b.dag"], read_from(files))

    assert [(node.name, node.retries) for node in dag.nodes] == [("0.A", 1), ("0.B", 1), ("1.A", 0)]


def test_names_that_are_not_munged() -> None:
    """Without numbers in front, the names of several files are names of one file."""
    files = {"a.dag": "JOB A a.sub\n", "b.dag": "JOB A x.sub\nJOB B b.sub\nPARENT A CHILD B\n"}
    dag, faults = check(["a.dag", "b.dag"], read_from(files), Options(munge_names=False))

    assert [node.name for node in dag.nodes] == ["A", "B"]
    assert [str(fault) for fault in faults] == ["b.dag, line 1: A is already a node: a.dag, line 1"]


def test_texts_of_strangers_are_read_within_bounds() -> None:
    """
    After so many faults, or so many changes of nodes, no more is read, and that is a fault; of more warnings it is said that there are
    more.
    """

    def bounded(text: str, bounds: Bounds) -> tuple[Dag, list[str]]:
        dag, faults = check(["a.dag"], read_from({"a.dag": text}), bounds=bounds)
        return dag, [str(fault) for fault in faults]

    _, found = bounded("X\n" * 5, Bounds(faults=3))
    assert ["a.dag, line 3: 3 faults are found, and no more are looked for"] == found[3:]
    nodes = "JOB A a.sub\nJOB B a.sub\nJOB C a.sub\n"
    _, found = bounded(nodes + "RETRY ALL_NODES 1\n" * 3, Bounds(changes=8))
    (only,) = found
    assert only.startswith("a.dag, line 6: the commands change nodes more than 8 times")
    many = "".join(f'VARS A x{number}="1"\n' for number in range(100))
    assert bounded(nodes + many, Bounds(changes=300))[1]
    assert not bounded(nodes + many, Bounds(changes=1_000))[1]
    dag, _ = bounded(nodes + "PRIORITY A 1\nPRIORITY A 2\n" * 4, Bounds(faults=3))
    assert 4 == len(dag.warnings)
    assert str(dag.warnings[-1]).endswith("more warnings are not told")
