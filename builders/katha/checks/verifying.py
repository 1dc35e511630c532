"""Having a model check a draft against its story: questions (:mod:`.questions`) and all the rest."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ....engine.stage import NoAnswer, Tools
from ....models.stand_ins import ANSWERED
from ....schemas.canonical import Json
from ..annotate_transitions import transitions_shown
from ..draft_scenes import scenes_shown
from ..drafts import LABELS, make_check
from .questions import QUESTION_PROMPTS, check_questions
from .reading import read_contrasts, read_record
from .verifier import Case, verifier_settings, why_unjudged, with_remark

MINIMAL, DESCRIBED = "model_contrast_minimal", "model_contrast_described"
READ, MORAL = "model_contrast_read", "model_contrast_moral"
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
        checks = [make_check(MINIMAL, f"{path}.contrastive_scene_text", None, why) for path in paths]
    else:
        checks = [
            check for path, entry in zip(paths, judged, strict=True) for check in _contrast(path, entry)
        ]
    return [*checks, *await _read_blind(case, variants, paths)]


async def _read_blind(case: Case, variants: Sequence[Json], paths: Sequence[str]) -> list[Json]:
    """Return what a reader who was not told of the changes makes of the variants."""
    try:
        seen = await case.ask(
            "katha/read_variants",
            lambda reply: read_contrasts(reply, len(variants), "change"),
            moral_label=case.draft["moral_label"],
            variants=list(variants),
        )
    except NoAnswer as failure:
        why = why_unjudged(failure)
        return [make_check(READ, f"{path}.contrastive_scene_text", None, why) for path in paths]
    return [
        check
        for path, variant, entry in zip(paths, variants, seen, strict=True)
        for check in _blind_reading(path, variant, entry)
    ]


def _blind_reading(path: str, variant: Json, seen: Json) -> Iterator[Json]:
    faults = [
        fault
        for fault, there in (
            (f"read as {seen['change_type']}, not as {variant['change_type']}",
             seen["change_type"] != variant["change_type"]),
            ("more than one meaning is changed", seen["others_changed"]),
            ("characters or things are not kept", not seen["entities_kept"]),
            ("it does not read well", not seen["fluent"]),
        )
        if there
    ]  # fmt: skip
    said = f"without having been told: {seen['change']}"
    read = with_remark("; ".join(faults), seen["change"]) if faults else said
    yield make_check(READ, f"{path}.contrastive_scene_text", not faults, read)
    wanted = variant["contrastive_moral"]
    fits = seen["moral_label"] in ((wanted,) if wanted else (None, variant["original_moral"]))
    said = f"the changed story is read as {seen['moral_label'] or 'no single value'}"
    more = "" if fits else f", the variant says {wanted or 'none but the original'}"
    yield make_check(MORAL, f"{path}.contrastive_moral", fits, said + more)


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
            scene_fields=scenes_shown(draft["scenes"]),
            transition_fields=transitions_shown(draft["transitions"]),
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


PROMPTS = (*QUESTION_PROMPTS, "katha/check_contrastives", "katha/read_variants", "katha/check_record")
"""Ids of the prompts that a check asks with."""


async def check_draft(story: Json, draft: Json, tools: Tools) -> list[Json]:
    """Return what a model finds in a draft, as checks (``schemas.values.Check`` as JSON).

    The model is the ``verifier`` of the stage's settings, where they have one, else their ``model``. What it
    could not judge has no verdict and says why. The codes:

    ==============================  ==================================================================
    model_answerable                without having seen the answers, the model gives an accepted one
    model_answers_equivalent        every accepted answer says the same as the canonical one
    question_not_guessable          neither title and characters nor the other scenes give the answer
    question_drawable               pictures can show what is asked, and the answer
    question_depends_on_transition  what it asks about happens in two scenes
    question_distinct               no earlier question asks the same (only where one does)
    model_contrast_minimal          a variant changes the meaning, and nothing beside it
    model_contrast_described        its kind and its description tell what was changed
    model_contrast_read             a reader who is not told finds this one change, the rest kept, good prose
    model_contrast_moral            this reader finds the moral that the variant names
    model_consistent                the story bears out the fields of a scene or transition
    model_renderable                one picture can show the scene
    model_label_fits                the story supports the label
    ==============================  ==================================================================

    Args:
        story: the story.
        draft: title, labels and lists of parts, as the stage ``apply_edits`` writes it.
        tools: the stage's tools.

    Raises:
        NoAnswer: the model cannot be reached (code ``unavailable``).
    """
    guessing = getattr(tools.settings, "guessing", True)
    case = Case(story, draft, replace(tools, settings=verifier_settings(tools.settings)), guessing)
    made = [*await check_questions(case), *await check_variants(case), *await check_fields(case)]
    return [{"producer": case.judge, **check} for check in made] if ANSWERED in case.judge else made
