"""How many generations of each method can be judged (Table 57), with the pictures that cannot be decoded.

Layout and files are checked before anything else runs; whether a file holds a picture shows where it is
decoded, once. Both together say the same as ``fabula outputs check``.

What an evaluation says about itself: protocol, subject and environment (``evaluation.json``).

The stages of judging storyboards, in order, and the files that a finished run holds.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ...engine.execute import STORE
from ...engine.manifest import Manifest, read_manifest
from ...engine.pipeline import Pipeline
from ...engine.stage import UNASKED, Item
from ...prompts.loader import TextSet
from ...schemas.canonical import Json, digest, jsonl_lines, write_atomic
from ...schemas.judgement import Judgement
from ...schemas.values import vocabulary
from ..archive.archive import write_judgements, write_manifest
from ..archive.replies import ReplyTally, labels_of
from ..judging.answers import Published, judgement_of
from ..judging.settings import MAIN, of_sets, public_judge
from ..recoverability.matching import PROTOCOL
from ..recoverability.method import versions
from ..recoverability.replies import VARIANT_QUESTION

KEPT = (
    "stories_requested",
    "stories_valid",
    "generations_requested",
    "generations_valid",
    "generations_invalid",
    "invalid_rate",
    "seeds",
)

STATED = ("unit", "frames_each")
"""Said of outputs that name their unit: what one file is, and how many frames of a video judges see."""


class Accounting:
    """Counts the generations of one method.

    ``outputs``: what checking the layout of its outputs found.
    """

    def __init__(self, outputs: Json) -> None:
        self._outputs = outputs
        self._good: list[tuple[str, int | None, Json]] = []
        self._unusable: Counter[str] = Counter()
        self.invalid: list[Json] = []
        """Generations that cannot be judged, each with the codes of what is wrong with it."""

    def add(self, item: Item) -> None:
        shown, unusable = item["shown"], item["unusable"]
        story, seed = shown["story_id"], shown["seed"]
        codes = shown["invalid"] or unusable
        if codes:
            self.invalid.append({"story_id": story, "seed": seed, "codes": codes})
        else:
            self._good.append((story, seed, shown["sha256"]))
        if unusable:
            self._unusable[story] += 1

    def as_json(self) -> dict[str, Any]:
        """Return the counts, and the hash of the content of all valid storyboards."""
        told = {name: self._outputs[name] for name in KEPT}
        told |= {name: self._outputs[name] for name in STATED if name in self._outputs}
        told["outputs_sha256"] = self._outputs["sha256"]
        if not self._unusable:
            return told
        count = self._unusable.total()
        told["generations_valid"] -= count
        told["generations_invalid"] += count
        told["invalid_rate"] = told["generations_invalid"] / told["generations_requested"]
        told["stories_valid"] -= len(set(self._unusable) - {story for story, _, _ in self._good})
        ordered = sorted(self._good, key=lambda one: (one[0], one[1] is not None, one[1]))
        told["outputs_sha256"] = digest([list(one) for one in ordered])
        return told


CONDITIONS_ASKED = ("question_text", "question_image", "question_text_image")
OFFICIAL_TEXTS = (*CONDITIONS_ASKED, *(f"dimension_{name}" for name in vocabulary("question_type").values))
"""The texts that a set of others' words has."""
ASKING = ("judge_text", "judge_images", "judge_both", "judge_contrasts")
PUBLISHED = Published(
    "katha",
    "kathatrace",
    tuple(OFFICIAL_TEXTS),
    {
        "katha": {
            f"{stage}.{key}": value
            for stage in ASKING
            for key, value in (("prompts", MAIN), ("votes", 1), ("temperature", 0.0))
        }
    },
)
"""The paper prints what judges are told and a sentence for each dimension (E.3, Table 35), and no prompts for
moral targets and pairs. ``--prompts official`` asks questions in its words, its protocol in ours."""
MATCHING = ("match_answers", "match_vectors")
DECODING = ("temperature", "max_tokens", "max_input_tokens", "sample", "votes")


class About(ReplyTally):
    """Collects what the manifest of an evaluation says, item by item."""

    kind = PROTOCOL
    first = "load_items"

    def __init__(self, run: Manifest) -> None:
        super().__init__(run)
        self._stories: set[str] = set()
        self._methods: dict[str, dict[str, Any]] = {}
        self._counts: dict[str, Accounting] = {}
        self._release: Json = {}
        self._unasked_texts: set[tuple[str, str, str, str, int]] = set()

    def add(self, item: Item) -> None:
        shown, outputs = item["shown"], item["about"]["outputs"]
        self._release = item["about"]["release"]
        self._stories.add(shown["story_id"])
        self._outputs[shown["method"]] = outputs
        counted = self._counts.setdefault(shown["method"], Accounting(outputs))
        counted.add(item)
        method = self._methods.setdefault(shown["method"], _method())
        method["panels"] += len(item["frames"])
        place = {"story_id": shown["story_id"], "seed": shown["seed"]}
        if item["scan"]["leaks"]:
            method["leaks"].append({**place, "leaks": item["scan"]["leaks"]})
        method["packets_scanned"] += item["scan"]["packets"]
        odd = sum(bool(frame["notes"]) for frame in item["frames"])
        method["pictures_with_notes"] += odd

    def leave_once(self, row: Json, story_id: str) -> None:
        """Take in one question that was not asked yet; one without pictures counts once for all methods."""
        if row["condition"] == "text":
            key = (row["judge"]["spec"], story_id, row["kind"], row["item"], row["vote"])
            if key in self._unasked_texts:
                return
            self._unasked_texts.add(key)
        self.leave(row)

    def environment(self) -> dict[str, Any]:
        """Return when, where and how it went, and the version of the release."""
        return {**super().environment(), "release": {"version": self._release.get("version")}}

    def method(self, name: str) -> dict[str, Any]:
        """Return the accounting of a method, and what was scanned of it."""
        counted = self._counts[name]
        return {**counted.as_json(), **self._methods[name], "invalid": counted.invalid}

    def protocol(self) -> dict[str, Any]:
        """Return how storyboards were judged."""
        settings = self._run.settings
        given = settings["judge_images"].get("texts")
        texts = None if given is None else TextSet.model_validate(given)
        judges = {spec for name in ASKING for spec in settings[name]["judges"]}
        asked = {
            "text": settings["judge_text"]["judges"],
            "image": settings["judge_images"]["judges"],
            "text_image": settings["judge_both"]["judges"],
            "contrast": settings["judge_contrasts"]["judges"],
        }
        return {
            "release": {"sha256": self._release.get("sha256")},
            "stories": {"count": len(self._stories), "sha256": digest(sorted(self._stories))},
            "judges": sorted(public_judge(spec).spec for spec in judges),
            "conditions": [name for name, specs in asked.items() if specs],
            "matcher": [*self._matchers()],
            "labels": settings["judge_images"]["labels"],
            "decoding": {name: {key: settings[name][key] for key in DECODING} for name in ASKING},
            "models": self.identities(sorted(judges)),
            "prompts": {**self._own_prompts(), **({} if texts is None else texts.labels())},
            **PUBLISHED.chosen(settings["judge_images"].get("preset"), self._run),
            "images": settings["prepare_images"],
            "metrics": versions(),
        }

    def _own_prompts(self) -> dict[str, str]:
        """Return the labels of our prompts, by the sets that were asked with."""
        sets = {self._run.settings[stage]["prompts"] for stage in ASKING}
        return labels_of(of_sets(self._run.prompts, sets))

    def _matchers(self) -> Iterator[str]:
        """Yield who compared answers; of an encoder also how near an answer had to be."""
        for name in MATCHING:
            given = self._run.settings[name]
            above = f" above {given['threshold']:g}" if "threshold" in given else ""
            yield from (public_judge(spec).spec + above for spec in given["judges"])


def _method() -> dict[str, Any]:
    return {"panels": 0, "packets_scanned": 0, "pictures_with_notes": 0, "leaks": []}


KIND = "evaluate-katha"
VARIANT = "variant"
"""Kind of an answer about a pair where the pictures are those of the variant."""
FRAMES = "frames.jsonl"
"""One line per generation: its pictures in the run's store, and why there are none."""

STAGES = (
    "load_items",
    "judging:prepare_images",
    "judging:scan_packets",
    "judging:JUDGE_TEXT",
    "judging:JUDGE_IMAGES",
    "judging:JUDGE_BOTH",
    "judging:JUDGE_CONTRASTS",
    "judging:MATCH_ANSWERS",
    "judging:MATCH_VECTORS",
)
ANSWERS = (
    "text_answers",
    "image_answers",
    "text_image_answers",
    "contrast_answers",
    "match_answers",
    "match_vectors",
)

PIPELINE = Pipeline(
    name=KIND,
    stages=tuple(f"{__package__}.{name}" for name in STAGES),
    finish=f"{__name__}:finish",
    final_fields=("about", "frames", "scan", "shown", "unusable", *ANSWERS),
    together=f"{__package__}.load_items:story_in",
)


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write archive, manifest and frames into the run folder."""
    run = read_manifest(folder)
    about = About(run)
    frames: list[Json] = []

    def judgements() -> Iterator[Judgement]:
        for item in items:
            made = {"kind": VARIANT} if "variant" in item["shown"] else {}
            is_about_variant = "variant" in item["about"]
            if not made and not is_about_variant:
                about.add(item)
                frames.append(_frames_line(item))
            for answers in ANSWERS:
                for said in item[answers]:
                    is_of_variant = is_about_variant and said["kind"] == "question"
                    row = {**said, "kind": VARIANT_QUESTION} if is_of_variant else said
                    if row["outcome"] == UNASKED:
                        about.leave_once(row, item["shown"]["story_id"])
                        continue
                    yield Judgement.model_validate(
                        judgement_of(PROTOCOL, {**row, **made}, item["shown"], run.created_at)
                    )

    # Text-only answers stand in the items of every method; each is kept and counted once.
    write_judgements(folder, judgements(), about.count)
    write_manifest(folder, about.manifest())
    write_atomic(folder / FRAMES, jsonl_lines(frames))


def _frames_line(item: Item) -> Json:
    shown = item["shown"]
    invalid = shown["invalid"] or item["unusable"] or None
    pictures = [{**frame, "file": f"{STORE}/{frame['file']}"} for frame in item["frames"]]
    return {
        "method": shown["method"], "unit": shown["story_id"], "seed": shown["seed"],
        "scenes": [] if invalid else shown["scenes"], "frames": pictures, "invalid": invalid,
        "leaks": item["scan"]["leaks"],
    }  # fmt: skip
