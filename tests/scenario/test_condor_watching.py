"""Commands that watch jobs and machines, in a pool that runs."""

from .condor import WAITS, Condor, Said


async def test_a_batch_is_watched_until_it_is_done(condor: Condor) -> None:
    """By what is recorded of its jobs, without a log; the exit status is the one that was asked for."""
    description = "executable = /bin/sh\narguments = \"-c 'exit 0'\"\nqueue 2\n"
    cluster = await condor.submitted(description)
    words = ("-clusters", f"{cluster}", "-exit", "all,done,7", "-exit", "any,held,8")
    said = await condor("condor_watch_q", *words)
    assert (7, "") == (said.status, said.err), said
    last = said.out.split("...\n")[-2].splitlines()
    assert ["-", "-", "2", "2", "-"] == last[1].split()[2:7], last
    assert "Total: 2 jobs; 2 completed" in last
    assert 'because of condition "all done" at ' in said.out.splitlines()[-1]
    held = await condor.submitted(f"{WAITS}hold = true\nbatch_name = night\nqueue\n")
    said = await condor("condor_watch_q", "-clusters", f"{held}", "-exit", "any,held,3", "-no-progress")
    assert (3, "") == (said.status, said.err), said
    assert ["night", "1", "-", "-", "-", "1", f"{held}.0"] == said.out.splitlines()[1].split()[:7]
    assert "Total: 1 jobs; 1 held" in said.out
    assert Said(0, "", "WARNING: No jobs found, exiting...\n") == await condor(
        "condor_watch_q", "-users", "nobody-else"
    )
