"""The table of `condor_q -dag`."""

from kettle_services.condor.printing.dag_table import DagTable
from kettle_wire.ads.types import Ad


def job(cluster: int, name: str = "", dag: int = 0) -> Ad:
    ad: Ad = {
        "ClusterId": cluster, "ProcId": 0, "Owner": "ada", "QDate": 0, "JobStatus": 2, "JobPrio": 0, "Cmd": "/bin/true",
    }  # fmt: skip
    return {**ad, "DAGManJobId": dag, "DAGNodeName": name} if name else ad


def test_nodes_stand_below_their_dag() -> None:
    """Also those of a DAG within a DAG, whatever was submitted in between; a name is cut to its column."""
    table = DagTable("jobs")
    assert [" ID      OWNER/NODENAME   SUBMITTED     RUN_TIME ST PRI SIZE CMD\n"] == [*table.begin()]
    assert [] == [*table.add([job(4), job(5), job(6, "first", 4), job(7, "inner", 4)])]
    assert [] == [*table.add([job(8), job(9, "a_very_long_name_of_a_node", 7), job(10, "second", 4)])]
    lines = [line[:24].rstrip() for line in table.end(())]
    assert [
        "   4.0   ada",
        "   6.0    |-first",
        "   7.0    |-inner",
        "   9.0     |-a_very_lon",
        "  10.0    |-second",
        "   5.0   ada",
        "   8.0   ada",
    ] == lines


def test_a_node_without_its_dag_stands_for_itself() -> None:
    """As when only some jobs were asked for."""
    table = DagTable("jobs")
    table.add([job(6, "first", 4)])
    assert ["   6.0   ada"] == [line[:24].rstrip() for line in table.end(())]
