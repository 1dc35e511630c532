"""``fabula calibrate``: an evaluation beside what people said."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ConfigError
from .command import command
from .common import chosen_form, released, show_tables, warn

if TYPE_CHECKING:
    from ..people.study import Exclusion


@command("calibrate", "people.study:Exclusion", owners="kinds.evaluations:owners_of_studies")
def calibrate(
    run: Path,
    *,
    options: "Exclusion",
    human: Path,
    release: Path | None = None,
    suite: Path | None = None,
    key: Path | None = None,
    valid: str = "people",
    nonresponse: str | None = None,
    confidence: Sequence[str] = (),
    fit_weights: Path | None = None,
    resamples: Annotated[int, typer.Option(min=0)] = 10_000,
    define: Sequence[str] = (),
    save: bool = False,
    form: str | None = None,
    as_json: bool = False,
) -> int:
    """Compare judges with people; no model is asked.

    Also shows what people answered. For shot images, every score is compared with people's ratings of stories
    and shots.

    Options:
        run: Evaluation folder.
        human: People's answers: .jsonl, .csv, or what `fabula review export` wrote.
        release: Release that was judged [where the evaluation found it].
        suite: Suite that was judged [the evaluation's copy].
        key: Key of anonymised tasks.
        valid: Whose text+image answers make a question valid: people, judges; all.
        nonresponse: No answer counts as incorrect (zero) or is excluded [excluded; events: zero].
        confidence: Probability a level stands for, as high=0.9.
        fit_weights: Write judges' weights here, fitted on the validation split.
        resamples: Bootstrap resamples.
        define: A named definition, such as cids=code, occm=code, csd=code.
        save: Keep it beside the evaluation, so that fabula report shows it.

    Examples:
        fabula calibrate runs/eval-a --human human.jsonl
        fabula calibrate runs/eval-b --human people.csv --key key.json --json
        fabula calibrate runs/eval-c --human people.csv --define cids=code
    """
    from ..evaluation.report.people import write_calibration
    from ..kinds.evaluations import calibrate as compare
    from ..kinds.evaluations import definitions_said, judging_of, require_options_of_study, study_of
    from ..people.against import LEVELS
    from ..people.recoverability import Resampling
    from ..people.study import StudySettings, write_weights

    form = chosen_form(form, as_json=as_json)
    settings = StudySettings(
        exclusion=options,
        resampling=Resampling(resamples),
        levels={**LEVELS, **_levels(confidence, tuple(LEVELS))},
        valid=valid,
        nonresponse=nonresponse,  # type: ignore[arg-type]  # checked by the class
        fit_split=None if fit_weights is None else "validation",
    )
    release = released(release)
    require_options_of_study(
        run,
        {
            "release": release, "suite": suite, "key": key, "nonresponse": nonresponse,
            "confidence": confidence, "fit_weights": fit_weights, "save": save, "define": define,
        },
    )  # fmt: skip
    source = release if release is not None else suite
    if "define" in study_of(run).options:
        warn(*definitions_said(run))
    report = compare(run, human, source, settings, key, define)
    if fit_weights is not None:
        write_weights(report, fit_weights)
    if save:
        write_calibration(run, report.document)
    of_people = judging_of(run).scored().of_people
    show_tables(report, lambda: of_people and of_people(report.document), form)
    return 0


def _levels(texts: Sequence[str], known: tuple[str, ...]) -> dict[str, float]:
    """Return level -> probability from texts such as ``high=0.9``."""
    found = {}
    for text in texts:
        name, _, number = text.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if name not in known or not 0 <= value <= 1:
            raise ConfigError(
                "--confidence", expected=f"one of {', '.join(known)}, = and a number from 0 to 1",
                found=repr(text), fix="write it as high=0.9",
            )  # fmt: skip
        found[name] = value
    return found
