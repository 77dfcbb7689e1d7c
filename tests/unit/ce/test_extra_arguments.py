"""What a job may say to the command that submits it, and what is its route's to say."""

import shlex

import pytest

from kettle_services.ce.domain.batch.extra_arguments import GRID_ENGINE, LSF, PBS, SLURM, OwnOptions


@pytest.mark.parametrize(
    ("own", "arguments"),
    [
        (SLURM, "--nice=7 --array=1-3 --qos long -C rome --licenses=a:1 -H -t 5"),
        (LSF, "-app big -R 'select[type==any]' -sp 5 -ext x -eptl 5"),
        (PBS, "-l walltime=5 -p 3 -m n -h -W umask=22"),
        (GRID_ENGINE, "-t 1-9 -l arch=lx -p -3 -ac x=y -hard"),
        *((own, "") for own in (SLURM, LSF, PBS, GRID_ENGINE)),
    ],
)
def test_what_a_job_wants_of_its_machine_is_said(own: OwnOptions, arguments: str) -> None:
    """With its values, however they are written."""
    assert "" == own.refused(shlex.split(arguments))


@pytest.mark.parametrize(
    ("own", "arguments", "refused"),
    [
        (SLURM, "--nice=7 --account=theirs", "--account=theirs"),
        (SLURM, "--acc theirs", "--acc"),
        (SLURM, "-Atheirs", "-Atheirs"),
        (SLURM, "-HA theirs", "-HA"),
        (SLURM, "--part=other", "--part=other"),
        (SLURM, "--job-name x", "--job-name"),
        (SLURM, "--wrap=id", "--wrap=id"),
        (SLURM, "/home/ada/other.sh", "/home/ada/other.sh"),
        (SLURM, "--qos=x other.sh", "other.sh"),
        (SLURM, "-t 5 other.sh", "other.sh"),
        (SLURM, "--", "--"),
        (LSF, "-P theirs", "-P"),
        (LSF, "-q other", "-q"),
        (LSF, "-qother", "-qother"),
        (LSF, "-J 'x[1-9]'", "-J"),
        (LSF, "-pack file", "-pack"),
        (PBS, "-Atheirs", "-Atheirs"),
        (PBS, "-hq other", "-hq"),
        (PBS, "-N x", "-N"),
        (PBS, "-C '#X'", "-C"),
        (PBS, "-- /bin/sh", "--"),
        (GRID_ENGINE, "-P theirs", "-P"),
        (GRID_ENGINE, "-q other", "-q"),
        (GRID_ENGINE, "-@ file", "-@"),
        (GRID_ENGINE, "-mods l_hard h_rt 9", "-mods"),
        (GRID_ENGINE, "-jc theirs", "-jc"),
    ],
)
def test_who_it_is_and_where_it_waits_is_not_its_to_say(
    own: OwnOptions, arguments: str, refused: str
) -> None:
    """Nor from where its script comes, however it is abbreviated or put together."""
    assert refused == own.refused(shlex.split(arguments))


def test_the_command_line_says_what_the_directives_say() -> None:
    """
    The site's hook has its own among them, and of two the last one counts. What the program itself writes are no directives.
    """
    script = "#!/bin/sh\n#SBATCH --job-name=k1\n#SBATCH --nodes=1\n#SBATCH --account=own\n#SBATCH --account=site\n#SBATCH 'odd\n"
    said = ["--job-name=k1", "--account=own", "--account=site"]
    assert said == SLURM.said_in(f"{script}echo x\n#SBATCH --account=late\n")
    assert ["-N", "k1", "-q", "long"] == GRID_ENGINE.said_in("#!/bin/sh\n#$ -N k1\n#$ -q long\n#$ -r n\n")


@pytest.mark.parametrize(
    ("own", "arguments", "refused"),
    [
        (SLURM, "--nice=7 -t 5", "-t"),
        (SLURM, "--nice=7 -t5", "-t5"),
        (SLURM, "--time=9-0", "--time=9-0"),
        (SLURM, "--tim 9-0", "--tim"),
        (SLURM, "-Ht5", "-Ht5"),
        (SLURM, "--mem-per-cpu=64G", "--mem-per-cpu=64G"),
        (SLURM, "-N 9", "-N"),
        (SLURM, "--mincpus=64", "--mincpus=64"),
        (SLURM, "--gres=gpu:8", "--gres=gpu:8"),
        (SLURM, "--array=1-900", "--array=1-900"),
        (SLURM, "--qos=high", "--qos=high"),
        (SLURM, "--reservation maintenance", "--reservation"),
        (LSF, "-sp 5 -W 900", "-W"),
        (LSF, "-R rusage[mem=1]", "-R"),
        (LSF, "-hostfile hosts", "-hostfile"),
        (PBS, "-m n -l walltime=900:00:00", "-l"),
        (PBS, "-hJ 1-9", "-hJ"),
        (PBS, "-L tasks=9:lprocs=64", "-L"),
        (GRID_ENGINE, "-ac x=y -l h_rt=9", "-l"),
        (GRID_ENGINE, "-t 1-9", "-t"),
        (GRID_ENGINE, "-masterl h_vmem=1T", "-masterl"),
    ],
)
def test_what_a_route_was_chosen_by_is_said_by_attributes(
    own: OwnOptions, arguments: str, refused: str
) -> None:
    """Of a job that a route has brought; other words are still its own, and without a route all are."""
    assert refused == own.refused(shlex.split(arguments), strict=True)
    assert "" == own.refused(shlex.split(arguments))


@pytest.mark.parametrize(
    ("own", "arguments"),
    [
        (SLURM, "--nice=7 -C rome --licenses=a:1 -H --dependency=afterok:1"),
        (LSF, "-sp 5 -ext x"),
        (PBS, "-m n -h -a 1200"),
        (GRID_ENGINE, "-p -3 -ac x=y"),
    ],
)
def test_other_words_are_the_jobs_own_by_a_route_too(own: OwnOptions, arguments: str) -> None:
    """There is no attribute for them, and no route looks at them."""
    assert "" == own.refused(shlex.split(arguments), strict=True)


def test_what_the_site_says_is_not_said_again() -> None:
    """Neither so nor in another way; the rest of what a job of its own asks for is free."""
    said = SLURM.said_by(["#SBATCH --qos=grid --time=60", "#SBATCH 'odd", "#SBATCH -C rome"])
    assert ["--qos=high", "-t", "-C"] == [
        SLURM.refused(shlex.split(each), said=said) for each in ("--qos=high", "-t 5", "-C milan")
    ]
    assert "" == SLURM.refused(["--mem=9"], said=said)
