"""Having a model check the contrastive variants, the fields of scenes and transitions, and the labels."""

from collections.abc import Iterator, Sequence

from ....engine.asking import NoAnswer
from ....schemas.canonical import Json
from ..parts import LABELS
from ..rule_checks import make_check
from . import shown
from .case import Case, why_unjudged, with_remark
from .read_checks import read_contrasts, read_record

MINIMAL, DESCRIBED = "model_contrast_minimal", "model_contrast_described"
CONSISTENT, RENDERABLE, LABEL = "model_consistent", "model_renderable", "model_label_fits"


async def check_variants(case: Case) -> list[Json]:
    """Return the checks of all variants: whether only the meaning is changed, and changed as described.

    Raises:
        NoAnswer: the model cannot be reached.
    """
    variants = case.draft["variants"]
    if not variants:
        return []
    paths = [f"$.variants[{number}]" for number in range(len(variants))]
    try:
        judged = await case.ask(
            "katha/check_contrastives",
            lambda reply: read_contrasts(reply, len(variants)),
            variants=list(variants),
        )
    except NoAnswer as failure:
        why = why_unjudged(failure)
        return [make_check(MINIMAL, f"{path}.contrastive_scene_text", None, why) for path in paths]
    return [check for path, entry in zip(paths, judged, strict=True) for check in _contrast(path, entry)]


def _contrast(path: str, judged: Json) -> Iterator[Json]:
    changed, kept = judged["meaning_changed"], judged["rest_kept"]
    fault = "more than the meaning is changed" if changed else "the meaning is not changed"
    minimal = changed and kept
    said = "the meaning is changed, the rest is kept" if minimal else with_remark(fault, judged["remark"])
    yield make_check(MINIMAL, f"{path}.contrastive_scene_text", minimal, said)
    fits = judged["description_fits"]
    said = "changed as described" if fits else with_remark("the description does not fit", judged["remark"])
    yield make_check(DESCRIBED, f"{path}.semantic_delta", fits, said)


async def check_fields(case: Case) -> list[Json]:
    """Return the checks of scenes, transitions and labels against the story.

    Raises:
        NoAnswer: the model cannot be reached.
    """
    draft = case.draft
    try:
        judged = await case.ask(
            "katha/check_record",
            lambda reply: read_record(reply, draft["scenes"], draft["transitions"]),
            moral_label=draft["moral_label"],
            narrative_type=draft["narrative_type"],
            scene_fields=shown.scenes_shown(draft["scenes"]),
            transition_fields=shown.transitions_shown(draft["transitions"]),
        )
    except NoAnswer as failure:
        return [make_check(CONSISTENT, "$.scenes", None, why_unjudged(failure))]
    return [
        *_contradictions("scenes", judged["scenes"]),
        *_renderable(judged["scenes"]),
        *_contradictions("transitions", judged["transitions"]),
        *_labels(draft, judged),
    ]


def _contradictions(name: str, entries: Sequence[Json]) -> Iterator[Json]:
    for number, entry in enumerate(entries):
        path = f"$.{name}[{number}]"
        if not entry["contradicted"]:
            yield make_check(CONSISTENT, path, True, "the story bears it out")
        for field in entry["contradicted"]:
            said = with_remark("the story does not bear it out", entry["remark"])
            yield make_check(CONSISTENT, f"{path}.{field}", False, said)


def _renderable(scenes: Sequence[Json]) -> Iterator[Json]:
    for number, scene in enumerate(scenes):
        shows = scene["renderable"]
        said = "one picture can show it" if shows else with_remark("no picture shows it", scene["remark"])
        yield make_check(RENDERABLE, f"$.scenes[{number}].visual_must_show", shows, said)


def _labels(draft: Json, judged: Json) -> Iterator[Json]:
    for name in LABELS:
        if draft[name] is not None:
            said = "fits" if judged[name] else with_remark("does not fit", judged["label_remark"])
            yield make_check(LABEL, f"$.{name}", judged[name], f"{draft[name]} {said}")
