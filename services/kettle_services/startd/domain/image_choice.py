"""
Which image a machine gives a job that names none in the way of `container_image` (SINGULARITY_IMAGE_EXPR).
"""

import posixpath
from collections.abc import Callable
from typing import Final

from kettle.classad import ClassAd, Context, EvaluationFailed, evaluate, parse
from kettle_wire.ads import Ad

_OWN: Final = frozenset({"containerimage", "dockerimage"})


def with_image(expression: str, job: Ad, slot: Callable[[], Ad], context: Context) -> Ad:
    """
    The job's ad with the image that `expression`, over the slot and with the job as TARGET, gives it; as it is if it names one itself,
    or if that is no text.
    """
    if any(name.lower() in _OWN for name in job):
        return job
    try:
        image = evaluate(parse(expression), ClassAd.from_wire(slot()), ClassAd.from_wire(job), context)
    except EvaluationFailed:
        return job
    if not isinstance(image, str) or not image:
        return job
    source = "local" if posixpath.isabs(image) else "docker" if image.startswith("docker://") else "cedar"
    return job | {"ContainerImage": image, "ContainerImageSource": source, "WantContainer": True}
