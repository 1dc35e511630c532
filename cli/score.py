"""``fabula score`` and ``fabula compare``: numbers from an evaluation, and two of them against each other."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ConfigError
from .command import command
from .common import released, show

if TYPE_CHECKING:
    from ..evaluation.events.votes import Definitions as EventDefinitions
    from ..evaluation.recoverability.definitions import Definitions
    from ..evaluation.shots.definitions import Definitions as ImageDefinitions
    from ..evaluation.shots.scores import ImageScores

DEFINITIONS = (
    "evaluation.recoverability.definitions:Definitions",
    "evaluation.events.votes:Definitions",
)
UNCERTAINTY = ("seed", "interval", "correction")
OF_KIND = {
    "katha": ("--release", "--split", "--matcher", "--support", "--weights", "--tables", "--nonresponse"),
    "events": ("--release", "--suite", "--voting", "--partial", "--nonresponse"),
    "images": ("--define", "--tables"),
}
"""Kind of an evaluation -> the options that it has and not every other; a release may hold events, too."""
NAMES = {"katha": "storyboards (katha)", "events": "videos (events)", "images": "shots (images)"}


@command("score", *DEFINITIONS)
def score(
    run: Path,
    *,
    given: Mapping[str, Any],
    release: Path | None = None,
    suite: Path | None = None,
    split: Sequence[str] = (),
    weights: Path | None = None,
    define: Sequence[str] = (),
    resamples: Annotated[int, typer.Option(min=0)] = 10_000,
    tables: Path | None = None,
    as_json: bool = False,
) -> int:
    """Compute the scores of an evaluation; no model is asked.

    An evaluation that is not finished can be scored too: the scores then say what is missing.

    Options:
        run: Evaluation folder.
        release: Release that was judged [where the evaluation says].
        suite: Event suite that was judged [the copy in the folder].
        split: Only stories of this split.
        matcher: Who compares answers: {evaluation.recoverability.matchers:MATCHERS}, or a matcher with
            archived verdicts [accepted].
        nonresponse: No answer counts as incorrect (zero) or is excluded [excluded; events: zero].
        weights: Weights of judges, fitted on a validation split [one vote each].
        define: Images: a named definition, such as cids=code, occm=code, csd=all, least=0.3.
        tables: Also write tables here: answers, matches, masks; of images, scores, strata, shots.

    Examples:
        fabula score runs/eval-a
        fabula score runs/eval-a --json
    """
    from ..evaluation.archive.archive import read_manifest
    from ..evaluation.recoverability.score import judged_folder, scores_of
    from ..kinds.verbs import load_stories

    release = released(release)
    kind = read_manifest(run).kind
    check_options(
        kind,
        {
            "--split": split, "--matcher": given.get("matcher"), "--support": given.get("support"),
            "--weights": weights, "--tables": tables, "--suite": suite, "--voting": given.get("voting"),
            "--partial": given.get("partial"), "--define": define, "--release": release,
            "--nonresponse": given.get("nonresponse"),
        },
    )  # fmt: skip
    if kind == "events":
        from ..evaluation.events.score import score_folder

        show(
            score_folder(run, suite_of(suite, release), event_definitions(given, resamples)), as_json=as_json
        )
        return 0
    if kind == "images":
        show(_image_scores(run, image_definitions(define, given, resamples), tables), as_json=as_json)
        return 0
    definitions = katha_definitions(given, weights, resamples)
    judged = judged_folder(run, release, definitions, splits=split, read=load_stories)
    if tables is not None:
        from ..evaluation.recoverability.score import write_tables

        write_tables(tables, run, judged, definitions)
    show(scores_of(judged, definitions), as_json=as_json)
    return 0


@command("compare", *DEFINITIONS)
def compare(
    first: Path,
    second: Path,
    *,
    given: Mapping[str, Any],
    release: Path | None = None,
    suite: Path | None = None,
    allow: Sequence[str] = (),
    weights: Path | None = None,
    define: Sequence[str] = (),
    resamples: Annotated[int, typer.Option(min=0)] = 10_000,
    as_json: bool = False,
) -> int:
    """Compare the methods of two evaluations with paired tests.

    Both must have been judged under the same protocol. For images, name one folder twice to compare the
    methods in it. The definitions are those of `fabula score`.

    Options:
        first: Evaluation folder.
        second: Evaluation folder.
        release: Release that was judged [where the evaluations say].
        suite: Event suite that was judged [the copies in the folders].
        allow: Part of the protocol that may differ, such as prompts.
        nonresponse: No answer counts as incorrect (zero) or is excluded [excluded; events: zero].
        weights: Weights of judges, fitted on a validation split [one vote each].
        define: Images: a named definition, such as cids=code.

    Examples:
        fabula compare runs/eval-a runs/eval-c
    """
    from ..evaluation.archive.archive import read_manifest
    from ..evaluation.recoverability.compare import compare_folders

    release = released(release)
    kind = read_manifest(first).kind
    check_options(
        kind,
        {
            "--matcher": given.get("matcher"), "--support": given.get("support"), "--weights": weights,
            "--suite": suite, "--voting": given.get("voting"), "--partial": given.get("partial"),
            "--define": define, "--release": release, "--nonresponse": given.get("nonresponse"),
        },
    )  # fmt: skip
    if kind == "events":
        from ..evaluation.events.compare import compare_folders as compare_events

        judged = suite_of(suite, release)
        found = compare_events(first, second, judged, event_definitions(given, resamples), allow)
        show(found, as_json=as_json)
    elif kind == "images":
        from ..evaluation.shots.compare import compare_folders as compare_images

        named = image_definitions(define, given, resamples)
        show(compare_images(first, second, named, allow), as_json=as_json)
    else:
        definitions = katha_definitions(given, weights, resamples)
        show(compare_folders(first, second, release, definitions, allow), as_json=as_json)
    return 0


def check_options(kind: str, given: Mapping[str, object]) -> None:
    """Refuse options that say nothing about an evaluation of this kind.

    Args:
        kind: katha, events or images.
        given: option -> its value; None or empty where it was not given.

    Raises:
        ConfigError: such options were given; all of them are named.
    """
    owners = {name: other for other in reversed(OF_KIND) for name in OF_KIND[other]}
    wrong = [name for name in given if given[name] and name in owners and name not in OF_KIND[kind]]
    if wrong:
        raise ConfigError(
            ", ".join(wrong), what=f"only for an evaluation of {NAMES[owners[wrong[0]]]}; this is one"
            f" of {NAMES[kind]}", fix=f"leave it out; the options for {kind} are"
            f" {', '.join(OF_KIND[kind])} and --resamples, --seed, --interval, --correction",
        )  # fmt: skip


def katha_definitions(given: Mapping[str, Any], weights: Path | None, resamples: int) -> "Definitions":
    """Return the definitions for storyboards.

    Raises:
        ConfigError: one of them does not exist. InputError: the weights cannot be used.
    """
    from ..evaluation.recoverability.definitions import Definitions
    from ..evaluation.recoverability.score import read_weights

    read = None if weights is None else read_weights(weights)
    named = {
        name: given[name] for name in ("matcher", "nonresponse", "support", *UNCERTAINTY) if name in given
    }
    return Definitions(weights=read, resamples=resamples, **named)


def event_definitions(given: Mapping[str, Any], resamples: int) -> "EventDefinitions":
    """Return the definitions for events; what no answer counts as is called ``zero`` there.

    Raises:
        ConfigError: one of them does not exist.
    """
    from ..evaluation.events.votes import Definitions

    named = {
        name: given[name] for name in ("voting", "nonresponse", "partial", *UNCERTAINTY) if name in given
    }
    if named.get("nonresponse") == "incorrect":
        named["nonresponse"] = "zero"
    return Definitions(resamples=resamples, **named)


def image_definitions(define: Sequence[str], given: Mapping[str, Any], resamples: int) -> "ImageDefinitions":
    """Return the definitions for shot images.

    Raises:
        ConfigError: one of them does not exist.
    """
    from ..evaluation.shots.definitions import read_definitions

    named = {name: given[name] for name in UNCERTAINTY if name in given}
    return read_definitions(define, resamples=resamples, **named)


def suite_of(suite: Path | None, release: Path | None) -> Path | None:
    """Return the suite that was judged: as given, or that of the given release of events.

    Raises:
        ConfigError: both are given.
    """
    if suite is not None and release is not None:
        raise ConfigError(
            "--release",
            what="--suite and a release of events are both given, and one is enough",
            fix="leave one out",
        )
    return suite if suite is not None else release


def _image_scores(run: Path, definitions: "ImageDefinitions", tables: Path | None) -> "ImageScores":
    """Return the scores of an evaluation of shot images; write them as tables into a folder, too."""
    from ..evaluation.archive.archive import read_archive
    from ..evaluation.shots.found import read_found
    from ..evaluation.shots.score import score_folder
    from ..evaluation.shots.tables import scored_shots, write_scores

    scores = score_folder(run, definitions)
    if tables is not None:
        write_scores(tables, scores, scored_shots(read_archive(run), read_found(run), scores))
    return scores
