"""Which image a machine gives a job that names none."""

import pytest

from kettle.classad import Context
from kettle_services.startd.domain.image_choice import with_image
from kettle_wire.ads import Ad

EXPRESSION = "TARGET.SingularityImage"


def chosen(job: Ad, expression: str = EXPRESSION) -> Ad:
    return with_image(expression, job, lambda: {"Rack": "a"}, Context())


@pytest.mark.parametrize(
    ("image", "source"),
    [("/cvmfs/x/y", "local"), ("docker://a/b:1", "docker"), ("image.sif", "cedar")],
)
def test_the_image_of_singularity_is_one(image: str, source: str) -> None:
    """A path of the machine, a name in a registry, or a file that came along."""
    job: Ad = {"SingularityImage": image}
    assert job | {"ContainerImage": image, "ContainerImageSource": source, "WantContainer": True} == chosen(
        job
    )


@pytest.mark.parametrize(
    "job",
    [
        {},
        {"SingularityImage": 7},
        {"SingularityImage": ""},
        {"SingularityImage": "/a", "containerimage": "/b"},
    ],
)
def test_other_jobs_stay_as_they_are(job: Ad) -> None:
    """Those that name their own image, in any spelling, and those that name none."""
    assert job is chosen(job)


def test_the_machine_may_choose_for_everybody() -> None:
    """By what it is and what the job says."""
    expression = 'ifThenElse(MY.Rack == "a", "/cvmfs/el9", undefined)'
    assert "/cvmfs/el9" == chosen({}, expression)["ContainerImage"]
