"""What may be chosen when seeds become a suite of event prompts."""

from collections.abc import Mapping
from dataclasses import dataclass

from ...engine.run_options import RunOptions


@dataclass(frozen=True, slots=True)
class SuiteOptions(RunOptions):
    """How to build a suite. What every run may choose comes as keywords.

    Attributes:
        model: the model that captions videos, writes prompts and lists events [none: people's prompts alone].
        generate: how many prompts the model is asked to write [as set, else 0].
        keep_all: if the seeds are a suite: keep every prompt, also those that break a condition or are
            near-duplicates.
        most: keep at most this many prompts [as set, else all].
        results: method -> file name -> completion rate of judged videos; None for those that the run has, if
            it has any. They filter the prompts and say how hard each is.
        people: the same by people, for the filter that compares them with the judge.
    """

    model: str | None = None
    generate: int | None = None
    keep_all: bool | None = None
    most: int | None = None
    results: Mapping[str, Mapping[str, float | None]] | None = None
    people: Mapping[str, Mapping[str, float | None]] | None = None
