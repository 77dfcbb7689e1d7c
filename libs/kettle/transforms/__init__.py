"""
The transform language: statements that change a job ad, written by administrators.

    transform = parse(text, source="job_transforms 'site'")
    outcome = transform.apply(ad)          # outcome.ad, outcome.complaints; None: its REQUIREMENTS are not true

What is wrong with the text itself is refused with its line (`TransformError`); what is wrong with one ad is a complaint,
and that statement is skipped.
"""

from kettle.transforms.parser import TransformError, parse
from kettle.transforms.submission import TooDifferentError, transformed
from kettle.transforms.transform import Outcome, Transform

__all__ = ["Outcome", "TooDifferentError", "Transform", "TransformError", "parse", "transformed"]
