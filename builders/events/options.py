"""What may be chosen when seeds become a suite of event prompts."""

from collections.abc import Mapping
from dataclasses import dataclass

from ...engine.run_options import RunOptions


@dataclass(frozen=True, slots=True)
class SuiteOptions(RunOptions):
    """How to build a suite. What every run may choose comes as keywords.

    Attributes:
        model: spec of the model that captions, writes and lists events; None: people's prompts alone.
        generate: prompts that the model is asked for; None for the settings' number, else none.
        keep_all: whether every prompt of a suite that is given as seeds stays, even where it breaks a
            condition or is a near-duplicate; None for what the settings say, else not.
        most: most prompts of the suite; None for the settings' number, else all.
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
