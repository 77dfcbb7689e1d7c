"""
Jobs as a submit side sees them: what comes in, what comes out, and how they end.
"""

from kettle.wire.work import Exited, Failed, Started

from conftest import Submitter, inline, job_ad, output, script  # isort: skip


async def test_a_program_runs_and_its_exit_code_comes_back(submitter: Submitter) -> None:
    """
    /bin/true exits with 0, is reported as started before, and has used something.
    """
    activation = await submitter.start(job_ad(Cmd="/bin/true"))

    exited = await submitter.final(activation)

    assert isinstance(exited, Exited)
    assert (0, None) == (exited.exit_code, exited.exit_signal)
    assert exited.usage.wall > 0
    kinds = [type(r.body) for r in submitter.reports if r.job == activation.job]
    assert [Started, Exited] == kinds[:2]
