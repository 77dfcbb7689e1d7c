"""Jobs that belong together as rows."""

from kettle.client.batches import Batch, by_batch, by_set, grouped
from kettle_services.cli.tables.batches import row
from kettle_wire.ads.types import Ad
from kettle_wire.commands.schedd import Unmade

IDLE, RUNNING, COMPLETED, HELD, SUSPENDED = 1, 2, 4, 5, 7


def job(cluster: int, proc: int, status: int, *, total: int = 3, **more: str | int) -> Ad:
    return {
        "ClusterId": cluster,
        "ProcId": proc,
        "Owner": "ada",
        "QDate": 100 * cluster,
        "JobStatus": status,
        "TotalSubmitProcs": total,
        **more,
    }


def test_a_batch_counts_all_of_its_clusters() -> None:
    """
    By batch_name, whatever the cluster; jobs that have left are done, and so are those that wait there for somebody to look.
    """
    ads = [
        job(1, 1, RUNNING, JobBatchName="sweep"),
        job(1, 2, COMPLETED, JobBatchName="sweep"),
        job(2, 0, HELD),
        job(3, 0, IDLE, JobBatchName="sweep"),
        job(3, 1, SUSPENDED, JobBatchName="sweep"),
    ]
    sweep, alone = grouped(ads, [], by_batch)
    assert ("ada", "sweep", [1, 3]) == (sweep.owner, sweep.name, sweep.clusters)
    assert (6, 3, 2, 1, 0) == (sweep.total, sweep.done, sweep.running, sweep.idle, sweep.held)
    assert [3, 2, 1, 0, 6, "1.1 ... 3.1"] == row(sweep)[3:]
    assert ["ID: 2", 2, 0, 0, 1, 3, "2.0"] == [row(alone)[1], *row(alone)[3:]]


def test_jobs_that_are_not_made_yet_are_idle_and_not_done() -> None:
    """Of a cluster that comes into the queue little by little."""
    (batch,) = grouped(
        [job(7, 4, IDLE, total=100)],
        [Unmade(cluster=7, owner="ada", made=5, total=100, paused=False)],
        by_batch,
    )
    assert (100, 4, 1, 95) == (batch.total, batch.done, batch.idle, batch.unmade)
    assert [4, 0, 96, 0, 100, "7.4"] == row(batch)[3:]


def test_only_jobs_of_sets_are_in_sets() -> None:
    """Each with its number; two people may use one name."""
    ads = [
        job(1, 0, IDLE, JobSetName="s", JobSetId=1),
        job(2, 0, IDLE),
        job(3, 0, IDLE, JobSetName="s", JobSetId=3, Owner="bob"),
        job(4, 0, RUNNING, JobSetName="s", JobSetId=1),
    ]
    found: list[Batch] = list(grouped(ads, [], by_set))
    assert [("ada", 1, 1, 1), ("bob", 3, 0, 1)] == [(b.owner, b.number, b.running, b.idle) for b in found]
    assert "1.0 ... 4.0" == row(found[0])[-1]
    assert "3.0" == row(found[1])[-1]


def test_jobs_of_one_cluster_are_a_range() -> None:
    """As condor_q writes it."""
    (batch,) = grouped([job(5, 0, IDLE), job(5, 1, IDLE), job(5, 2, IDLE)], [], by_batch)
    assert "5.0-2" == row(batch)[-1]


def test_a_dag_is_a_row_that_counts_its_nodes() -> None:
    """
    Done and total are of nodes, as the job of the DAG says; its own job counts as none, the jobs of its nodes by how they are.
    """
    node: dict[str, int | str] = {"DAGManJobId": 4, "JobBatchName": "diamond.dag+4"}
    ads = [
        job(4, 0, RUNNING, total=1, DAG_NodesTotal=10, DAG_NodesDone=6, JobBatchName="diamond.dag+4"),
        job(5, 0, RUNNING, total=1, **node),
        job(6, 0, IDLE, total=1, **node),
        job(7, 0, HELD, total=1, **node),
    ]
    (dag,) = grouped(ads, [], by_batch)
    assert ["ada", "diamond.dag+4", [4, 5, 6, 7]] == [dag.owner, dag.name, dag.clusters]
    assert [6, 1, 1, 1, 10, "5.0 ... 7.0"] == row(dag)[3:]
    (only,) = grouped(ads[:1], [], by_batch)
    assert [6, 0, 0, 0, 10, "4.0"] == row(only)[3:]


def test_nodes_without_a_batch_are_with_their_dag() -> None:
    """A DAG job that names no batch is one with its nodes all the same."""
    ads = [job(4, 0, RUNNING, DAG_NodesTotal=2, DAG_NodesDone=0), job(5, 0, IDLE, total=1, DAGManJobId=4)]
    (dag,) = grouped(ads, [], by_batch)
    assert ("ID: 4", 2, 1) == (dag.name, dag.total, dag.idle)
