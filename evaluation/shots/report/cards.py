"""What a report on shot images shows with pictures: single shots with their boxes, and whole stories.

Pictures of an evaluation are found by place and known by their hash.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from typing import Any

from ....errors import ConfigError, InputError, UserError
from ....releases.shots.tree import FOLDER, IMAGES, SCRIPT
from ....schemas.canonical import digest, sha256_file
from ....schemas.judgement import EvaluationManifest
from ....schemas.plain_files import composed, read_plain
from ....schemas.shots import Shot, ShotScript, TwoTexts
from ....schemas.text import counted
from ...archive.archive import sources_of
from ...metrics.metric import label_of, lead_of, metric_of, metrics
from ...metrics.story import FoundStory
from ...outputs.shots import Choice as Outputs
from ...outputs.shots import find_root, story_folders
from ...report.model import (
    DrawnBox,
    Examples,
    Onstage,
    ShotCard,
    Snap,
    StoryGrid,
    StoryOfMethod,
    StyleMatrix,
    WallCrop,
    WallRow,
    WorstShots,
)
from ...report.showing import Thumbnails, Valued, examples_of, kept_picture
from ..load_stories import OUTPUTS, SHOTS, generated_references
from ..scores import ImageScores
from ..scoring import Key, ShotScore, style_table

MOST_BYTES, MOST_FILES = 64_000_000, 400
"""Largest picture that is looked at, and most pictures of one story."""


Files = tuple[int, bool]


@dataclass
class ShotFiles:
    """Finds pictures of shots and references; gives a file only if it is the one that was evaluated."""

    folder: Path  # the evaluation folder
    roots: Mapping[str, Path]  # method -> folder of its outputs
    release: Path | None  # the set of scripts; None where it is not at hand
    choice: Outputs  # which mode, language and time stamp of outputs
    own_references: bool = False  # whether references were those that methods drew
    changed: set[tuple[str, str, int]] = field(default_factory=set)  # shots whose pictures are others now
    # method -> number of a story, and whether it is of what the method drew of characters -> pictures
    _listed: dict[str, dict[Files, list[Path]]] = field(default_factory=dict, repr=False)
    _hashed: dict[tuple[str, Files], dict[str, Path]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, folder: Path, manifest: EvaluationManifest, release: Path | None, outputs: Sequence[Path]
    ) -> "ShotFiles":
        """Return what finds the pictures of an evaluation.

        ``release``: the set of scripts; None for the place that the evaluation names.
        """
        selection = mapping_of(manifest.environment.get("selection"))
        known = sources_of(folder, manifest)
        roots = {composed(path.name): path for role, path in known if role == OUTPUTS}
        roots |= _given(outputs, mapping_of(manifest.subject.get("methods")))
        if release is None:
            release = next((path for role, path in known if role == SHOTS), None)
        given = (selection.get(name) for name in ("mode", "language", "timestamp"))
        choice = Outputs(*(value if isinstance(value, str) else None for value in given))
        return cls(folder, roots, release, choice, manifest.protocol.get("references") == "generated")

    def shot(self, method: str, story_id: str, number: int, sha256: str | None) -> Path | None:
        """Return the picture of a shot; None where it is not at hand."""
        if sha256 is None:
            return None
        hashed = self._by_hash(method, (_number(story_id), False))
        if hashed and sha256 not in hashed:
            self.changed.add((method, story_id, number))
        return hashed.get(sha256)

    def view(self, file: object) -> Path | None:
        """Return a picture that judging kept in the run folder."""
        return kept_picture(self.folder, file)

    def reference(self, story: FoundStory, sha256: str) -> Path | None:
        """Return a reference image of a story by its hash; None where it is not at hand."""
        if self.own_references:
            return self._by_hash(story.method, (_number(story.story_id), True)).get(sha256)
        folder = self.story_folder(story.story_id)
        pictures = [] if folder is None else sorted((folder / IMAGES).rglob("*"))
        return self._by_hash("", (_number(story.story_id), True), pictures).get(sha256)

    def story_folder(self, story_id: str) -> Path | None:
        """Return the folder of a story's script and references; None where it is not at hand."""
        if self.release is None or not story_id.isdigit():
            return None
        root = self.release / FOLDER if (self.release / FOLDER).is_dir() else self.release
        return root / story_id if (root / story_id).is_dir() else None

    def _by_hash(self, method: str, of: Files, files: Sequence[Path] | None = None) -> dict[str, Path]:
        """Return pictures by their hash, read once: these, or those of a story among a method's outputs."""
        if (method, of) not in self._hashed:
            listed = self._of_method(method).get(of, []) if files is None else files
            hashed = ((_sha256(file), file) for file in reversed(listed[:MOST_FILES]))
            self._hashed[method, of] = {sha256: file for sha256, file in hashed if sha256 is not None}
        return self._hashed[method, of]

    def _of_method(self, method: str) -> dict[Files, list[Path]]:
        if method not in self._listed:
            listed: dict[Files, list[Path]] = {}
            try:
                root = find_root(self.roots[method], self.choice)
                for folder in story_folders(root, self.choice):
                    listed.setdefault((int(folder.story_id), False), []).extend(
                        file for _, file in folder.files
                    )
                drawn = generated_references(root, self.choice) if self.own_references else {}
                for number, characters in drawn.items():
                    listed[number, True] = [file for some in characters.values() for file in some]
            except (KeyError, InputError, ConfigError, OSError):
                listed = {}  # the page says where a picture is not at hand
            self._listed[method] = listed
        return self._listed[method]


def _given(outputs: Sequence[Path], methods: Mapping[str, Any]) -> dict[str, Path]:
    given = {composed(path.resolve().name): path for path in outputs}
    problems = [
        UserError(
            str(path), what=f"{name} is none of the methods that were evaluated: {', '.join(methods)}",
            fix="give the folder as it was evaluated: its name is the method's",
        )
        for name, path in given.items()
        if name not in methods or not path.is_dir()
    ]  # fmt: skip
    if problems:
        raise InputError(problems)
    return given


def _sha256(file: Path) -> str | None:
    try:
        if not file.is_file() or file.stat().st_size > MOST_BYTES:
            return None
        return sha256_file(file)
    except OSError:
        return None


def _number(story_id: str) -> int:
    return int(story_id) if story_id.isascii() and story_id.isdigit() else -1


def mapping_of(value: object) -> Mapping[str, Any]:
    """Return a mapping as it is; an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


LANGUAGE = "en"
BOX = 5
"""Numbers of a box: left, top, right, bottom, score."""


@dataclass
class Looked:
    """An evaluation as its report looks at it."""

    scores: ImageScores  # the scores
    stories: Mapping[Key, FoundStory]  # method and story -> the line of the archive
    shots: Mapping[Key, tuple[ShotScore, ...]]  # method and story -> its shots
    files: ShotFiles  # where the pictures are
    snaps: Thumbnails  # makes them small
    # pictures that judges saw are smaller than the evaluated ones if a side is as long as this; 0 where that
    # is not known
    side: int = 0
    _scripts: dict[str, ShotScript | None] = field(default_factory=dict, repr=False)

    def by_method(self) -> dict[str, list[ShotScore]]:
        """Return method -> all its shots."""
        every: dict[str, list[ShotScore]] = {method.method: [] for method in self.scores.methods}
        for (method, _), some in self.shots.items():
            every[method].extend(some)
        return every

    def card(self, shot: ShotScore) -> ShotCard:
        story = self.stories[shot.method, shot.story_id]
        file, whole = self._picture(shot, story)
        picture, size = self.snaps.whole(file) if shot.sha256 is not None else (_NOTHING, None)
        who = {match.crop: match.character for match in shot.matches if match.crop is not None}
        boxes: list[DrawnBox] = []
        if size is not None and whole and picture.data is not None:
            drawn = (_drawn(box, size, n + 1, who.get(n)) for n, box in enumerate(shot.boxes or ()))
            boxes = [box for box in drawn if box is not None]
        return ShotCard(
            method=shot.method,
            story_id=shot.story_id,
            number=shot.number,
            picture=picture,
            boxes=tuple(boxes),
            onstage=shot.onstage,
            found=None if shot.boxes is None else len(shot.boxes),
            cast=tuple(
                Onstage(
                    character=match.character,
                    box=None if match.crop is None else match.crop + 1,
                    similarity=match.cross,
                    missed=None if match.missed is None else match.missed.replace("image", "picture"),
                )
                for match in shot.matches
            ),
            values=dict(shot.values),
            missing=dict(shot.missing),
            texts=self._texts(story, shot.number),
        )

    def wall(self, story: FoundStory) -> tuple[WallRow, ...]:
        """Return the characters of a story, each with its references and crops."""
        if story.crops is None:
            return ()
        shots = self.shots[story.method, story.story_id]
        return tuple(self._row(story, key, tag, shots) for key, tag in story.characters.items())

    def _row(self, story: FoundStory, key: str, tag: str | None, shots: tuple[ShotScore, ...]) -> WallRow:
        boxes = reference_boxes(story, key)
        references = []
        for index, sha256 in enumerate(story.references.get(key, ())):
            box = boxes[index] if index < len(boxes) else None
            references.append(self.snaps.crop(self.files.reference(story, sha256), box))
        crops, missed = [], []
        for shot in shots:
            for match in shot.matches:
                if match.character != key:
                    continue
                if match.crop is None:
                    missed.append(f"{shot.number} ({(match.missed or '').replace('image', 'picture')})")
                    continue
                crops.append(
                    WallCrop(
                        shot=shot.number,
                        picture=self._crop(story, shot, key, match.crop),
                        similarity=match.cross,
                    )
                )
        known = [crop.similarity for crop in crops if crop.similarity is not None]
        mean = sum(known) / len(known) if known else None
        return WallRow(
            character=key, tag=tag, references=tuple(references), crops=tuple(crops), mean=mean,
            missed=tuple(missed),
        )  # fmt: skip

    def _crop(self, story: FoundStory, shot: ShotScore, key: str, index: int) -> Snap:
        box = (shot.boxes or ())[index] if index < len(shot.boxes or ()) else None
        file, whole = self._picture(shot, story)
        if file is not None and whole and box is not None:
            return self.snaps.crop(file, box)
        views = story.views.get("crops")
        for view in views if isinstance(views, list) else ():  # what a judge was shown of this very box
            wanted = {"shot": shot.number, "character": key, "box": list(box or ())}
            if isinstance(view, dict) and wanted.items() <= {name: view.get(name) for name in wanted}.items():
                return self.snaps.crop(self.files.view(view.get("file")), None)
        return self.snaps.none()

    def _picture(self, shot: ShotScore, story: FoundStory) -> tuple[Path | None, bool]:
        """Return a shot's picture, and whether boxes fit it: those that judges saw may be smaller."""
        file = self.files.shot(shot.method, shot.story_id, shot.number, shot.sha256)
        if file is not None:
            return file, True
        views = story.views.get("shots")
        view = views.get(str(shot.number)) if isinstance(views, dict) else None
        if not isinstance(view, dict):
            return None, False
        sides = [view.get("width"), view.get("height")]
        return self.files.view(view.get("file")), all(
            isinstance(side, int) and side < self.side for side in sides
        )

    def _texts(self, story: FoundStory, number: int) -> dict[str, str]:
        script = self._script(story)
        shot = None if script is None else next((shot for shot in script.shots if shot.index == number), None)
        if shot is None:
            return {}
        parts = {"Setting": shot.setting, "Framing": shot.perspective, "Description": shot.static}
        return {name: text for name, part in parts.items() if (text := _text(part))}

    def _script(self, story: FoundStory) -> ShotScript | None:
        """Return a story's script; None where it is not at hand, or names other shots or characters."""
        if story.story_id not in self._scripts:
            folder, script = self.files.story_folder(story.story_id), None
            try:
                if folder is not None:
                    script = ShotScript.model_validate_json(read_plain(folder / SCRIPT, follow=True))
            except (OSError, ValueError):
                script = None
            self._scripts[story.story_id] = script
        script = self._scripts[story.story_id]
        return script if script is not None and _fits(script, story) else None


_NOTHING = Snap(lost="no picture was generated")


def style_matrix(looked: Looked, key: Key) -> StyleMatrix | None:
    """Return how alike the styles of a story's pictures are; None where nobody looked."""
    styles = style_table(looked.stories[key])
    story = next(
        story for method in looked.scores.methods if method.method == key[0]
        for story in method.stories if story.story_id == key[1]
    )  # fmt: skip
    if styles is None or "csd_self" not in story.scores:
        return None
    numbers, table = styles
    cross = {shot.number: shot.values.get("csd_cross") for shot in looked.shots[key]}
    return StyleMatrix(
        shots=numbers,
        rows=tuple(tuple(None if isnan(cosine) else float(cosine) for cosine in row) for row in table),
        cross=tuple(cross.get(number) for number in numbers),
        score=story.scores["csd_self"],
    )


def reference_boxes(story: FoundStory, key: str) -> list[Sequence[float] | None]:
    """Return the box of each reference of a character; None where it counts whole, or has none."""
    boxes_of_characters = (story.boxes or {}).get("references")
    boxes = boxes_of_characters.get(key) if isinstance(boxes_of_characters, dict) else None
    return [
        some[0]
        if isinstance(some, list) and some and isinstance(some[0], list) and len(some[0]) == BOX
        else None
        for some in (boxes if isinstance(boxes, list) else ())
    ]


def _drawn(
    box: tuple[float, ...], size: tuple[int, int], number: int, character: str | None
) -> DrawnBox | None:
    """Return a box as shares of its picture; None where it lies outside."""
    left, top = max(0.0, box[0] / size[0]), max(0.0, box[1] / size[1])
    right, bottom = min(1.0, box[2] / size[0]), min(1.0, box[3] / size[1])
    if not (right > left and bottom > top):
        return None
    return DrawnBox(
        left=left, top=top, width=right - left, height=bottom - top, number=number, character=character
    )


def _fits(script: ShotScript, story: FoundStory) -> bool:
    def cast(shot: Shot) -> tuple[str, ...]:
        return tuple(key for key in dict.fromkeys(shot.characters) if key in script.characters)

    shots = [(shot.index, cast(shot)) for shot in script.shots]
    return shots == [(shot.number, shot.expected) for shot in story.shots]


def _text(texts: TwoTexts | None) -> str:
    return "" if texts is None else (texts.of(LANGUAGE) or texts.of("ch")).strip()


# -- Which shots and stories are shown

EACH = 8
"""Worst shots by each score."""
CARDS = 480
"""Shots in all stories that are shown, about: whole stories are taken until there are so many."""
LOWEST, TYPICAL, HIGHEST = 8, 4, 4
"""Stories of each kind, where there are more than :data:`CARDS` shots."""


def worst_shots(looked: Looked, methods: Sequence[str]) -> tuple[WorstShots, ...]:
    """Return the worst shots by each score that single shots have; a perfect one is none of them."""
    every = [shot for shots in looked.shots.values() for shot in shots if shot.method in methods]
    every.sort(key=lambda shot: digest(_key(shot)))  # of equal ones not always the first of a set are shown
    made = []
    for metric in metrics():
        name = metric.name
        if not (metric.per_shot and metric.ranked):
            continue
        sign, perfect = (1, metric.range[1]) if metric.higher else (-1, metric.range[0])
        valued = sorted(
            (sign * round(shot.values[name], 9), n) for n, shot in enumerate(every) if name in shot.values
        )
        ordered = [every[n] for value, n in valued if value < sign * perfect]
        if ordered:
            made.append(
                WorstShots(
                    name=name, label=metric.label, digits=metric.digits, total=len(valued),
                    cards=tuple(looked.card(shot) for shot in _picked(ordered, methods)),
                )
            )  # fmt: skip
    return tuple(made)


def shot_examples(looked: Looked, methods: Sequence[str]) -> Iterator[Examples]:
    """Yield a card for each score that single shots have: shots at its ends and in its middle."""
    every = [shot for shots in looked.shots.values() for shot in shots if shot.method in methods]
    for metric in metrics():
        valued = [
            Valued(shot.values[metric.name], "{}, story {}, shot {}".format(*_key(shot)), shot)
            for shot in every if metric.name in shot.values
        ]  # fmt: skip
        meaning = f"{metric.meaning} Here of single shots."
        made = examples_of(metric, meaning, valued, lambda shot: [looked.card(shot).picture])
        if made is not None:
            yield made


def _picked(ordered: Sequence[ShotScore], methods: Sequence[str]) -> list[ShotScore]:
    """Return a share of each method's worst shots, filled up with the worst of all, in order."""
    share, counts, own = max(1, EACH // max(1, len(methods))), Counter[str](), []
    for shot in ordered:
        if counts[shot.method] < share:
            own.append(_key(shot))
        counts[shot.method] += 1
    wanted = set(own[:EACH])
    others = [_key(shot) for shot in ordered if _key(shot) not in wanted]
    wanted |= set(others[: EACH - len(wanted)])
    return [shot for shot in ordered if _key(shot) in wanted]


def _key(shot: ShotScore) -> tuple[str, str, int]:
    return shot.method, shot.story_id, shot.number


def shown_stories(
    looked: Looked, methods: Sequence[str], wanted: Sequence[str]
) -> tuple[tuple[tuple[str, str], ...], str]:
    """Return ids of the stories that are shown, each with why, and how they were chosen."""
    there = list(dict.fromkeys(story for method, story in looked.stories if method in methods))
    if wanted:
        note = f"{len(wanted)} of {counted(len(there), 'story')}, as chosen."
        return tuple((story, "chosen") for story in dict.fromkeys(wanted)), note
    cards = {story: sum(len(looked.shots.get((method, story), ())) for method in methods) for story in there}
    if sum(cards.values()) <= CARDS:
        return tuple(
            (story, "all") for story in there
        ), f"{counted(len(there), 'story')}, all that there are."
    lead = lead_of(dict.fromkeys(name for method in looked.scores.methods for name in method.scores))
    ordered = _by_value(looked, methods, there, lead)
    middle = (len(ordered) - 1) / 2
    central = sorted(ordered, key=lambda story: (abs(ordered.index(story) - middle), story))
    kinds_of = {
        "lowest": ordered[:LOWEST],
        "typical": central[:TYPICAL],
        "highest": ordered[::-1][:HIGHEST],
    }
    taken: dict[str, str] = {}
    used = 0
    for story, why in _by_turns(kinds_of):
        if story not in taken and (not taken or used + cards[story] <= CARDS):
            taken[story] = why
            used += cards[story]
    by = "" if lead is None else f" in {label_of(lead)}, by the mean over the methods that are shown"
    note = f"{len(taken)} of {counted(len(there), 'story')}: lowest, in the middle and highest{by}."
    kinds = list(kinds_of)
    return tuple(
        sorted(taken.items(), key=lambda entry: (kinds.index(entry[1]), ordered.index(entry[0])))
    ), note


def story_grid(looked: Looked, story: str, why: str, methods: Sequence[str]) -> StoryGrid:
    made = []
    for method in methods:
        key = (method, story)
        if key not in looked.stories:
            continue
        scored = next(scores for scores in looked.scores.methods if scores.method == method)
        scores = next(row.scores for row in scored.stories if row.story_id == story)
        made.append(
            StoryOfMethod(
                method=method, scores=dict(scores),
                cards=tuple(looked.card(shot) for shot in looked.shots[key]),
                wall=looked.wall(looked.stories[key]), styles=style_matrix(looked, key),
            )
        )  # fmt: skip
    return StoryGrid(story_id=story, why=why, methods=tuple(made))


def _by_value(looked: Looked, methods: Sequence[str], stories: Sequence[str], lead: str | None) -> list[str]:
    """Return stories from the lowest mean over methods; those without any value come last."""
    values: dict[str, list[float]] = {story: [] for story in stories}
    for method in looked.scores.methods:
        for story in method.stories if method.method in methods else ():
            score = story.scores.get(lead or "")
            if score is not None and score.value is not None:
                values[story.story_id].append(score.value)
    known = [story for story in stories if values[story]]
    sign = 1 if lead is None or metric_of(lead).higher else -1
    known.sort(key=lambda story: (sign * sum(values[story]) / len(values[story]), digest(story)))
    return [*known, *(story for story in stories if not values[story])]


def _by_turns(wanted: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Return stories of every kind by turns, each with its kind, so that a limit leaves some of each."""
    longest = max(map(len, wanted.values()))
    return [(some[n], why) for n in range(longest) for why, some in wanted.items() if n < len(some)]
