"""What the commands of a DAG file say, as the value that everything else reads."""

import msgspec
import pytest

from kettle.dag.structure import AbortRule, Dag, Dot, NodeKind, NodeStatusFile, Script, Tolerance, Variable

from .dag_files import dag_of, node_of, pairs

DIAMOND = """\
JOB A a.sub
JOB B b.sub
JOB C c.sub
JOB D d.sub
PARENT A CHILD B C
PARENT B C CHILD D
"""


def test_diamond() -> None:
    """Nodes have their indices in the order of their lines, and edges go between them."""
    dag = dag_of(DIAMOND)

    assert [node.name for node in dag.nodes] == ["A", "B", "C", "D"]
    assert [node.submit for node in dag.nodes] == ["a.sub", "b.sub", "c.sub", "d.sub"]
    assert pairs(dag) == [("A", "B"), ("A", "C"), ("B", "D"), ("C", "D")]
    assert list(dag.edges.parents().nodes_of(3)) == [1, 2]


def test_order_of_lines() -> None:
    """A line may speak of nodes that are made further down."""
    dag = dag_of('PARENT A CHILD B\nVARS A x="1"\nRETRY B 2\nJOB A a.sub\nJOB B b.sub\n')

    assert pairs(dag) == [("A", "B")]
    assert dag.nodes[0].variables == (Variable("x", "1"),)
    assert dag.nodes[1].retries == 2


def test_join() -> None:
    """Where many wait for many, edges are as many as names, and yet each waits for each."""
    names = range(100)
    text = "".join(f"JOB p{at} x.sub\nJOB c{at} x.sub\n" for at in names)
    text += f"PARENT {' '.join(f'p{at}' for at in names)} CHILD {' '.join(f'c{at}' for at in names)}\n"
    dag = dag_of(text)

    assert dag.edges.joins == 1
    assert len(dag.edges.weak) == 200
    assert len(dag.nodes) == 200
    assert pairs(dag) == sorted((f"p{parent}", f"c{child}") for parent in names for child in names)


@pytest.mark.parametrize(
    "lines",
    ["PARENT A CHILD B\nWEAK PARENT A CHILD B\n", "WEAK PARENT A CHILD B\nPARENT A CHILD B\n"],
)
def test_strong_beats_weak(lines: str) -> None:
    """Of a strong and a weak edge of the same pair the strong one stays, whichever line comes first."""
    dag = dag_of("JOB A a.sub\nJOB B b.sub\n" + lines)

    assert dag.edges.children().of(0) == [1]
    assert dag.edges.children().weakness_of(0) == b"\0"


def test_weak_join() -> None:
    """An all-to-all line that is weak is weak on the side of the parents: what stands between cannot fail."""
    dag = dag_of("JOB A x\nJOB B x\nJOB C x\nJOB D x\nweak parent A B child C D\n")
    children = dag.edges.children()

    assert [children.of(at) for at in range(5)] == [[4], [4], [], [], [2, 3]]
    assert children.weakness_of(0) == b"\1"
    assert children.weakness_of(4) == b"\0\0"


def test_said_of_a_node() -> None:
    """Everything that can be said of a node is found in it."""
    node = node_of(
        "JOB A a.sub DIR work NOOP DONE\n"
        "SCRIPT DEFER 4 60 DEBUG pre.log ALL PRE A prepare.sh $NODE  'two  blanks'\n"
        "SCRIPT POST A finish.sh $RETURN\n"
        "script hold A tell.sh\n"
        "RETRY A 3 UNLESS-EXIT 7\n"
        "ABORT-DAG-ON A 10 RETURN 1\n"
        "PRE_SKIP A 2\n"
        "TOLERANCE A 10% WAIT\n"
        "PRIORITY A -5\n"
        "CATEGORY A big\n"
        "SAVE_POINT_FILE A\n"
    )

    assert (node.kind, node.directory, node.is_noop, node.is_done) == (NodeKind.JOB, "work", True, True)
    assert node.pre == Script("prepare.sh $NODE  'two  blanks'", 4, 60, "pre.log", "ALL")
    assert node.post == Script("finish.sh $RETURN")
    assert node.hold == Script("tell.sh")
    assert (node.retries, node.unless_exit) == (3, 7)
    assert node.abort == AbortRule(10, 1)
    assert node.pre_skip == 2
    assert node.tolerance == Tolerance(10, is_percent=True, fail_fast=False)
    assert (node.priority, node.category, node.save_point) == (-5, "big", "A-a.dag.save")


def test_variables() -> None:
    """
    A value has its quotes and backslashes resolved, an attribute its prefix, and each variable its placement.
    """
    node = node_of(
        "JOB A a.sub\n"
        r'VARS A text="say \"hi\" to C:\\x" bare=word spaced = "a b" +Attr="1" My.Other=2 empty=""' + "\n"
        'VARS A APPEND late="x" text="again"\n'
    )

    assert node.variables == (
        Variable("text", "again"),
        Variable("bare", "word"),
        Variable("spaced", "a b"),
        Variable("My.Attr", "1"),
        Variable("My.Other", "2"),
        Variable("empty", ""),
        Variable("late", "x", is_appended=True),
    )


def test_escapes() -> None:
    """Within quotes a backslash takes the next character as it is; outside it is one like the others."""
    node = node_of("JOB A a.sub\n" r'VARS A one="say \"hi\" to C:\\x" two=C:\x three=' r"'it\'s'" "\n")

    assert [variable.value for variable in node.variables] == ['say "hi" to C:\\x', "C:\\x", "it's"]


def test_files() -> None:
    """The files that a DAG writes, and what is for the job that runs it, are said once for the whole."""
    dag = dag_of(
        "JOB A a.sub\n"
        "DOT graph.dot UPDATE DONT-OVERWRITE INCLUDE head.dot\n"
        "NODE_STATUS_FILE status 120 ALWAYS-UPDATE\n"
        "JOBSTATE_LOG states.log\n"
        "CONFIG dag.config\n"
        "ENV SET X=1;Y=2\n"
        "ENV GET HOME, LANG PATH\n"
        'SET_JOB_ATTR Project = "dust"\n'
        "MAXJOBS big 4\n"
    )

    assert dag.dot == Dot("graph.dot", update=True, overwrite=False, header="head.dot")
    assert dag.node_status_file == NodeStatusFile("status", 120, always_update=True)
    assert dag.jobstate_log == "states.log"
    assert dag.job.config == "dag.config"
    assert dag.job.environment == ("X=1;Y=2",)
    assert dag.job.inherited == ("HOME", "LANG", "PATH")
    assert dag.job.attributes == ('Project = "dust"',)
    assert dag.throttles == {"big": 4}


def test_all_nodes() -> None:
    """ALL_NODES stands for jobs and sub-DAGs, and not for the nodes beside the graph."""
    dag = dag_of(
        "JOB A a.sub\nSUBDAG EXTERNAL B b.dag\nFINAL F f.sub\nPROVISIONER P p.sub\nSERVICE S s.sub\nRETRY all_nodes 2\n"
    )

    assert [(node.name, node.retries) for node in dag.nodes] == [
        ("A", 2),
        ("B", 2),
        ("F", 0),
        ("P", 0),
        ("S", 0),
    ]
    assert (dag.final, dag.provisioner, dag.services) == (2, 3, (4,))


def test_encoding() -> None:
    """The value survives being sent."""
    dag = dag_of(DIAMOND + 'SCRIPT PRE A x.sh\nVARS ALL_NODES n="1"\nFINAL F f.sub\n')

    assert msgspec.msgpack.decode(msgspec.msgpack.encode(dag), type=Dag) == dag
