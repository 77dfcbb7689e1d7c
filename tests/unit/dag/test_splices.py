"""Files within files: splices, pins, included files, and descriptions that stand in a DAG file."""

import pytest

from kettle.dag.building.options import Options
from kettle.dag.building.parser import parse
from kettle.dag.structure import SpliceUse

from .dag_files import dag_of, faults_of, node_of, pairs, read_from

PIPE = "JOB first x.sub\nJOB last x.sub\nPARENT first CHILD last\n"


def test_ends() -> None:
    """As a child a splice is its nodes without parents, as a parent those without children."""
    dag = dag_of("JOB A a\nSPLICE S s.dag\nJOB B b\nPARENT A CHILD S\nPARENT S CHILD B\n", {"s.dag": PIPE})

    assert [node.name for node in dag.nodes] == ["A", "S+first", "S+last", "B"]
    assert pairs(dag) == [("A", "S+first"), ("S+first", "S+last"), ("S+last", "B")]
    assert dag.splices == (SpliceUse("S", "s.dag", 1, 3),)


def test_nested() -> None:
    """
    Names and directories of splices within splices stand one in front of the other; the same file may be used twice.
    """
    files = {"sub/mid.dag": "SPLICE x in.dag DIR deep\nSPLICE y in.dag DIR /abs\nJOB M m.sub DIR d\n"}
    files |= {"sub/deep/in.dag": "JOB I i.sub\n", "/abs/in.dag": "JOB I i.sub DIR own\n"}
    dag = dag_of("SPLICE S mid.dag DIR sub\n", files)

    assert {node.name: node.directory for node in dag.nodes} == {
        "S+x+I": "sub/deep",
        "S+y+I": "/abs/own",
        "S+M": "sub/d",
    }


def test_categories() -> None:
    """A category belongs to its file, unless it begins with a plus."""
    inner = "JOB I i\nJOB K k\nCATEGORY I big\nCATEGORY K +all\nMAXJOBS big 1\nMAXJOBS +all 2\n"
    dag = dag_of("SPLICE S s.dag\nJOB A a\nCATEGORY A big\nMAXJOBS big 3\n", {"s.dag": inner})

    assert [node.category for node in dag.nodes] == ["S+big", "+all", "big"]
    assert dag.throttles == {"S+big": 1, "+all": 2, "big": 3}


def test_nodes_of_a_splice_are_its_own() -> None:
    """What is said of a splice's nodes stands in its file; ALL_NODES outside does not mean them."""
    files = {"s.dag": PIPE}

    assert [node.retries for node in dag_of("SPLICE S s.dag\nJOB A a\nRETRY ALL_NODES 2\n", files).nodes] == [
        0,
        0,
        2,
    ]
    assert faults_of("SPLICE S s.dag\nRETRY S 2\nRETRY S+first 1\n", files) == [
        "a.dag, line 2: S is a splice; what is said of its nodes has to stand in its own file",
        "a.dag, line 3: no node is called S+first",
    ]


def test_splice_without_ends() -> None:
    """A splice whose nodes all have children cannot come before anything."""
    files = {"s.dag": "JOB I i\nJOB K k\nPARENT I CHILD K\nPARENT K CHILD I\n", "empty.dag": "# nothing\n"}

    assert faults_of(
        "SPLICE S s.dag\nSPLICE E empty.dag\nJOB A a\nPARENT S CHILD A\nPARENT A CHILD E\n", files
    ) == [
        "a.dag, line 4: the splice S has no node without children, and cannot stand here",
        "a.dag, line 5: the splice E has no node without parents, and cannot stand here",
    ]


def test_pins() -> None:
    """Pins of the same number are connected, all with all."""
    files = {
        "up.dag": "JOB a x\nJOB b x\nJOB c x\nPIN_OUT a 1\nPIN_OUT b 1\nPIN_OUT c 2\n",
        "down.dag": "JOB d x\nJOB e x\nPIN_IN d 1\nPIN_IN e 2\nPIN_IN d 2\n",
    }
    dag = dag_of("SPLICE U up.dag\nSPLICE D down.dag\nCONNECT U D\n", files)

    assert pairs(dag) == [("U+a", "D+d"), ("U+b", "D+d"), ("U+c", "D+d"), ("U+c", "D+e")]


@pytest.mark.parametrize(
    ("up", "down", "sentence"),
    [
        ("", "PIN_IN d 1\n", "the splice U has no PIN_OUT"),
        ("PIN_OUT a 1\n", "", "the splice D has no PIN_IN"),
        ("PIN_OUT a 1\nPIN_OUT a 3\n", "PIN_IN d 1\nPIN_IN d 2\n", "the splice U has no PIN_OUT 2"),
        (
            "PIN_OUT a 1\n",
            "PIN_IN d 1\nPIN_IN e 2\n",
            "has 1 numbers of PIN_OUT and the splice D 2 of PIN_IN",
        ),
        ("PIN_OUT a 1\n", "PIN_IN d 1\n", "in the splice D nothing comes before D+e; give each a PIN_IN"),
    ],
)
def test_pins_that_do_not_fit(up: str, down: str, sentence: str) -> None:
    """Pins have numbers without gaps, as many on both sides, and reach every node that has no parent."""
    files = {"up.dag": "JOB a x\n" + up, "down.dag": "JOB d x\nJOB e x\n" + down}
    (fault,) = faults_of("SPLICE U up.dag\nSPLICE D down.dag\nCONNECT U D\n", files)

    assert fault.startswith("a.dag, line 3: ")
    assert sentence in fault


def test_include() -> None:
    """An included file is a part of this one from its line on, and not before."""
    files = {"more.dag": "JOB B b.sub\nRETRY ALL_NODES 1\n"}

    assert pairs(dag_of("JOB A a\nINCLUDE more.dag\nPARENT A CHILD B\n", files)) == [("A", "B")]
    assert [node.retries for node in dag_of("JOB A a\nINCLUDE more.dag\n", files).nodes] == [1, 1]
    assert faults_of("JOB A a\nPARENT A CHILD B\nINCLUDE more.dag\n", files) == [
        "a.dag, line 2: no node or splice is called B"
    ]


def test_settings_in_inner_files() -> None:
    """Only the outermost file speaks of the job that runs the DAG; elsewhere there is a warning."""
    dag = dag_of("INCLUDE b.dag\n", {"b.dag": "JOB A a\nCONFIG c\nENV SET X=1\nSET_JOB_ATTR Y = 1\n"})

    assert dag.job.config == ""
    assert [warning.line for warning in dag.warnings] == [2, 3, 4]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_spliced_file_has_no_files_of_the_whole(*, is_first: bool) -> None:
    """Whatever stands before what, the outer file says which files tell of the DAG."""
    outer = "NODE_STATUS_FILE outer.status 30\nDOT outer.dot\nJOBSTATE_LOG outer.log\n"
    splice = "SPLICE S s.dag DIR sub\n"
    inner = {"sub/s.dag": f"{PIPE}NODE_STATUS_FILE inner.status\nDOT inner.dot\nJOBSTATE_LOG inner.log\n"}
    dag = dag_of(splice + outer if is_first else outer + splice, inner)

    assert dag.node_status_file is not None
    assert dag.dot is not None
    assert ("outer.status", "outer.dot", "outer.log") == (
        dag.node_status_file.path,
        dag.dot.path,
        dag.jobstate_log,
    )
    assert [4, 5, 6] == [warning.line for warning in dag.warnings]


def test_use_dag_directory() -> None:
    """With -usedagdir each file's paths are relative to its own directory, and its nodes run there."""
    files = {
        "one/a.dag": "JOB A a\nSPLICE S s.dag\nCONFIG c\n",
        "one/s.dag": "JOB B b\n",
        "two/b.dag": "JOB C c\n",
    }
    dag = parse(["one/a.dag", "two/b.dag"], read_from(files), Options(use_dag_directory=True))

    assert {node.name: node.directory for node in dag.nodes} == {"0.A": "one", "0.S+0.B": "one", "1.C": "two"}
    assert dag.job.config == "one/c"


def test_descriptions() -> None:
    """
    A description stands in braces or between tags; comments and empty lines in it are dropped, its options follow.
    """
    text = (
        "JOB A {\n  executable = /bin/true\n\n# no\n  arguments = }x\n} DIR work NOOP\n"
        "JOB B @=END\nqueue\n} \n@END\n"
        "SUBMIT-DESCRIPTION common {\n  executable = /bin/false\n}\n"
        "JOB C common\nJOB D file.sub\n"
    )
    dag = dag_of(text)

    assert [node.description for node in dag.nodes] == [
        "executable = /bin/true\narguments = }x\n",
        "queue\n}\n",
        "executable = /bin/false\n",
        None,
    ]
    assert (dag.nodes[0].directory, dag.nodes[0].is_noop, dag.nodes[2].submit) == ("work", True, "common")


def test_descriptions_of_the_outer_file() -> None:
    """A splice uses the descriptions of the files around it, and its own first."""
    inner = "JOB I shared\nJOB K own\nSUBMIT-DESCRIPTION own {\ninner\n}\n"
    text = "SPLICE S s.dag\nSUBMIT_DESCRIPTION shared @=X\nouter\n@X\nSUBMIT-DESCRIPTION own {\nouter\n}\n"

    assert [node.description for node in dag_of(text, {"s.dag": inner}).nodes] == ["outer\n", "inner\n"]


def test_lines() -> None:
    """
    Byte order marks, line ends of other systems, comments, joined lines and the case of words make no difference.
    """
    text = "\ufeff# a\r\n// b\r\njob A a.sub\r\nJob B \\\r\n# between\r\n\r\n  b.sub\r\nparent\tA child B\r\nrEtRy A 2 unless_exit 3"
    dag = dag_of(text)

    assert pairs(dag) == [("A", "B")]
    assert (dag.nodes[0].retries, dag.nodes[0].unless_exit, dag.nodes[1].submit) == (2, 3, "b.sub")
    assert dag.nodes[1].line == 4


def test_odd_names() -> None:
    """A name may have every character but a plus; quotes stay part of it, blanks within them, too."""
    text = 'JOB é:,;#$()[]{}=\\* a.sub\nJOB "two words" "my file.sub"\nPARENT é:,;#$()[]{}=\\* CHILD "two words"\n'
    dag = dag_of(text)

    assert pairs(dag) == [("é:,;#$()[]{}=\\*", '"two words"')]
    assert dag.nodes[1].submit == "my file.sub"
    assert node_of("JOB a+b x\n", "a+b", options=Options(allow_any_names=True)).submit == "x"


def test_partial_files() -> None:
    """A rescue file speaks of nodes by the names that they have in the whole DAG."""
    files = {"a.dag": "SPLICE S s.dag\nJOB A a\nRETRY A 3\n", "s.dag": PIPE}
    files["a.dag.rescue001"] = "# comment\n\nDONE S+first\nRETRY A 1 UNLESS-EXIT 2\n"
    dag = parse(["a.dag"], read_from(files), partial="a.dag.rescue001")

    assert [(node.name, node.is_done, node.retries) for node in dag.nodes] == [
        ("S+first", True, 0),
        ("S+last", False, 0),
        ("A", False, 1),
    ]
