"""Calibrating an evaluation with people: the archive and the release or suite, beside a file of answers."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import ConfigError, InputError, TargetError, UserError
from ..evaluation.archive import Archive, check_hash, read_archive, sources_of
from ..evaluation.completion.score import score_archive, subject_methods
from ..evaluation.completion.scores import PanelScore
from ..evaluation.completion.voting import Definitions, NonResponse
from ..evaluation.hashes import release_sha256
from ..evaluation.images.definitions import Definitions as ImageDefinitions
from ..evaluation.images.found import read_found
from ..evaluation.images.score import score_archive as score_images
from ..evaluation.images.shot_table import scored_shots
from ..releases.loading import Release, load
from ..releases.suites import SUITE, load_suite
from ..schemas.canonical import pretty_bytes, write_atomic
from ..schemas.events import Suite
from ..schemas.judgement import EvaluationManifest
from .alignment import ALL, alignment, human_rates
from .consistency import agreements
from .exclude import exclude
from .known import Known
from .pictures import KINDS, RATING, shot_item, study_pictures
from .plain import as_plain
from .read import read_human
from .sampling import read_key
from .study import StudySettings, definitions, people, study_storyboards
from .told import told

Verified = dict[tuple[str, str], float | None]
"""Model and video -> the judge's rate; null where it has no answer."""


@dataclass(frozen=True)
class HumanReport:
    """What people said and how judges compare.

    Attributes:
        document: all of it, as plain JSON.
    """

    document: dict[str, Any] = field(repr=False)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return self.document

    def lines(self) -> Iterator[str]:
        """Return it for people."""
        return told(self.document)


def calibrate(
    folder: str | Path,
    human: str | Path,
    source: str | Path | None = None,
    settings: StudySettings | None = None,
    key: str | Path | None = None,
    define: ImageDefinitions | None = None,
) -> HumanReport:
    """Compare an evaluation with what people said.

    Args:
        folder: the evaluation folder.
        human: people's answers, ``.jsonl`` or ``.csv``.
        source: the release or suite that was judged with; None: where the evaluation found it.
        settings: definitions; None for the defaults.
        key: the key of anonymised tasks, if the answers name tasks.
        define: how shot images are scored; None for the defaults.

    Raises:
        InputError: archive, release, suite, key or answers cannot be used; every problem is listed.
        ConfigError: the release is neither given nor known.
    """
    archive = read_archive(folder)
    chosen = settings or StudySettings()
    if archive.manifest.kind == "events":
        return _events(archive, Path(folder), Path(human), (source, key), chosen)
    if archive.manifest.kind == "images":
        return _images(archive, Path(folder), Path(human), chosen, define)
    release = _release(archive, folder, source)
    methods = frozenset(archive.manifest.subject.get("methods", ()))
    rows = read_human(human, Known.of_records(release.records, methods))
    return HumanReport(study_storyboards(rows, release.records, archive.judgements, chosen))


def _images(
    archive: Archive, folder: Path, human: Path, settings: StudySettings, define: ImageDefinitions | None
) -> HumanReport:
    found = read_found(folder)
    scoring = replace(define or ImageDefinitions(), resamples=0)
    scores = score_images(archive, found, scoring)
    shots = scored_shots(archive, found, scores)
    known = Known(
        methods=frozenset(one.method for one in found),
        pictures=frozenset(one.story_id for one in found)
        | {shot_item(one.story_id, shot.number) for one in found for shot in one.shots},
        rating=RATING,
        kinds=KINDS,
    )
    return HumanReport(study_pictures(read_human(human, known), scores, shots, settings))


def write_weights(report: HumanReport, path: Path) -> None:
    """Write the fitted weights as ``fabula score --weights`` reads them.

    Raises:
        InputError: none could be fitted, as nobody answered a judged question of the split.
        TargetError: the file cannot be written.
    """
    fitted = report.document.get("weights")
    if not fitted or not any(fitted["weights"].values()):
        raise InputError(
            [
                UserError(
                    "--fit-weights",
                    what="nobody answered a judged question of the validation split",
                    fix="ask people about stories of that split, or leave the option out",
                )
            ]
        )
    try:
        write_atomic(path, [pretty_bytes(fitted)])
    except OSError as error:
        raise TargetError(
            str(path), what=f"the file cannot be written: {error}", fix="choose another place"
        ) from error


def _release(archive: Archive, folder: str | Path, source: str | Path | None) -> Release:
    place = Path(source) if source is not None else _remembered(folder, archive.manifest)
    check_hash(archive, "release", release_sha256(place), str(place))
    return load(place)


def _remembered(folder: str | Path, manifest: EvaluationManifest) -> Path:
    """Return where the evaluation found its release."""
    for role, path in sources_of(folder, manifest):
        if role == "release":
            return path
    raise ConfigError(
        "--release", what="the archive does not say which release was judged",
        fix="give its folder with --release",
    )  # fmt: skip


def _events(
    archive: Archive,
    folder: Path,
    human: Path,
    given: tuple[str | Path | None, str | Path | None],
    settings: StudySettings,
) -> HumanReport:
    source, key = given
    place = Path(source) if source is not None else folder / SUITE
    suite = load_suite(place)
    check_hash(archive, "suite", suite.sha256(), str(place))
    known = Known(
        methods=frozenset(subject_methods(archive.manifest)),
        events={name: len(prompt.event_list) for name, prompt in suite.prompts.items()},
        classes={name: prompt.labels for name, prompt in suite.prompts.items()},
        kinds=frozenset(("completion", "attention")),
    )
    rows = read_human(human, known, None if key is None else read_key(key))
    kept = exclude(rows, settings.exclusion)
    rates = human_rates(kept.rows)
    nonresponse: NonResponse = "excluded" if settings.nonresponse == "excluded" else "zero"
    verifiers, ways = _verified(archive, suite, Definitions(nonresponse=nonresponse, resamples=0))
    document = {
        "kind": "events",
        "definitions": definitions(settings, nonresponse),
        "people": people(rows, kept, settings),
        "agreement": as_plain(agreements(kept.rows, {})),
        "judges": {
            judge: {
                "nonresponse": nonresponse,
                "videos": sum(video in own for video in rates),
                "not_answered": sum(video in own and own[video] is None for video in rates),
                "not_judged": sum(video not in own for video in rates),
                "classes": as_plain(alignment(rates, _counted(own, nonresponse), known.classes)),
                "alternatives": {
                    way: as_plain(alignment(rates, _counted(combined[judge], nonresponse), {})[ALL])
                    for way, combined in ways.items()
                },
            }
            for judge, own in sorted(verifiers.items())
        },
    }
    return HumanReport(document)


def _verified(
    archive: Archive, suite: Suite, definitions: Definitions
) -> tuple[dict[str, Verified], dict[str, dict[str, Verified]]]:
    """Return judge -> its rate of each video; and the same for every way to combine votes (Table 4)."""
    panels = score_archive(archive, suite, definitions).panels
    ways = list(dict.fromkeys(way for panel in panels for way in panel.alternatives))
    return _by_judge(panels), {
        way: _by_judge(score_archive(archive, suite, replace(definitions, voting=way)).panels) for way in ways
    }


def _by_judge(panels: Iterable[PanelScore]) -> dict[str, Verified]:
    found: dict[str, Verified] = {}
    for panel in panels:
        own = found.setdefault(panel.panel.judge, {})
        own |= {(panel.panel.method, one.unit): one.rate for one in panel.videos}
    return found


def _counted(
    rates: Mapping[tuple[str, str], float | None], nonresponse: NonResponse
) -> dict[tuple[str, str], float]:
    """Return the rates that count: of a video without an answer zero, or none."""
    silent = 0.0 if nonresponse == "zero" else None
    counted = {video: silent if rate is None else rate for video, rate in rates.items()}
    return {video: rate for video, rate in counted.items() if rate is not None}
