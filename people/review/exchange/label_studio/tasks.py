"""Items as tasks of Label Studio, answers as results of its annotations.

Source: labelstud.io/guide/task_format (tasks and results), labelstud.io/guide/storage (local files). Seen in
version 1.23.2: HyperText shows local files and no data URLs, Image both; an empty list of images breaks it.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

from .....schemas.canonical import Json, canonical_bytes, write_atomic
from ...items import Media
from ...task import UNCLEAR, place_of
from ..cells import cell_of, token_of
from ..evidence import copy_media, embedded, plain_evidence, stored_name
from ..sheets import Asked, Load, Sheet
from .interface import EVIDENCE, Control, controls_of, data_name, interface_of, pictures_name

CONFIG, TASKS, GUIDE = "config.xml", "tasks.json", "label-studio.txt"
MODEL = "answers that were there"
ABSENT = "–"
LIMITS = (
    "raw events of the page: lead_time is taken for the time that an answer took",
    "that every picture was loaded before the answer",
    "labels beyond the fifth",
)


def write_label_studio(load: Load, folder: Path) -> tuple[str, ...]:
    """Write a project for Label Studio: its labeling config and its tasks; return what it cannot hold.

    Raises:
        OSError: the folder cannot be written.
    """
    root = f"fabula/{load.study.protocol.name}-seat-{load.seat}"
    interface = interface_of(load)
    if not load.embed:
        copy_media(load, folder / "media")

    def address(medium: Media) -> str:
        return f"/data/local-files/?d={quote(f'{root}/{stored_name(load, medium)}')}"

    tasks = []
    for sheet in load.sheets:
        evidence = plain_evidence(load, sheet, None if load.embed else address)
        tasks.append({"data": _data(load, sheet, evidence), **_begun(load, sheet)})
    write_atomic(folder / CONFIG, [interface.xml.encode("utf-8")])
    write_atomic(folder / TASKS, [canonical_bytes(tasks) + b"\n"])
    write_atomic(folder / GUIDE, [_guide(load, root).encode("utf-8")])
    listed = ("how pictures are arranged and named: there is one list of them for each side",)
    return (*LIMITS, *interface.limits, *(listed if load.embed else ()))


def _guide(load: Load, root: str) -> str:
    local = [
        f"Copy what is in media/ to ROOT/{root} on the machine of Label Studio, where ROOT is a",
        "folder of your choice, and start Label Studio with",
        "LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true and",
        "LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT=ROOT.",
        f"In the project: Settings, Cloud Storage, Add Source Storage, Local Files, ROOT/{root}.",
        "Do not sync it.",
    ]
    steps = [
        f"Make a project; paste {CONFIG} as its labeling interface (Code), and the instructions as its",
        "instructions.",
        *([] if load.embed or not any(sheet.item.media for sheet in load.sheets) else local),
        f"Import {TASKS}. Keep the sampling sequential: the order of the items is drawn for this seat.",
        "One person answers the tasks. When they are done: Export, JSON, and give that file to",
        "fabula review import STUDY --format label-studio --from FILE --person NUMBER=PSEUDONYM,",
        "where NUMBER is the person's number in Label Studio (completed_by in the file).",
    ]
    return "\n".join(steps) + "\n"


def _data(load: Load, sheet: Sheet, evidence: str) -> dict[str, Json]:
    data: dict[str, Json] = {
        "item": sheet.key, "seat": sheet.seat, "number": sheet.number, EVIDENCE: evidence or ABSENT,
        **load.study.seen(sheet.item.item),
    }  # fmt: skip
    if load.embed:
        for number, side in enumerate(sheet.shown.sides):
            data[pictures_name(number)] = [embedded(load, medium) for medium in side]
    for control in controls_of(load).values():
        if control.turn:
            parts = sheet.shown.parts.get(control.question.each or "", ())
            part = parts[control.turn - 1] if control.turn <= len(parts) else None
            detail = f" ({'; '.join(part.detail)})" if part is not None and part.detail else ""
            text = ABSENT if part is None else part.text + detail
            data[data_name(control.question.each or "", control.turn)] = text
    return data


def _begun(load: Load, sheet: Sheet) -> dict[str, Json]:
    answers = load.answers.get(sheet.key)
    if not answers:
        return {}
    return {"predictions": [{"model_version": MODEL, "result": list(results_of(load, sheet, answers))}]}


def results_of(load: Load, sheet: Sheet, answers: Mapping[str, Json]) -> Iterator[dict[str, Json]]:
    """Yield answers to an item as results of Label Studio, of an annotation or a prediction."""
    for control in controls_of(load).values():
        asked = asked_by(sheet, control)
        if asked is None or asked.name not in answers:
            continue
        kind, value = _value(control, asked, answers[asked.name])
        if value is not None:
            yield {
                "id": f"{sheet.number}-{control.name}", "from_name": control.name, "to_name": EVIDENCE,
                "type": kind, "value": {"text" if kind == "textarea" else kind: [value]},
            }  # fmt: skip


def _value(control: Control, asked: Asked, answer: Json) -> tuple[str, str | None]:
    question = control.question
    if question.type in ("text", "edits"):
        return "textarea", cell_of(asked, answer)
    if question.type != "labels" or answer == UNCLEAR:
        return "choices", None if control.rank else cell_of(asked, answer)
    return "choices", token_of(question, answer[control.rank]) if control.rank < len(answer) else None


def asked_by(sheet: Sheet, control: Control) -> Asked | None:
    """Return the question that a field stands for in an item; None where the item has no such part."""
    parts = sheet.shown.parts.get(control.question.each or "", ())
    if control.turn > len(parts):
        return None
    name = place_of(control.question.name, parts[control.turn - 1].id if control.turn else "")
    return next(asked for asked in sheet.asked if asked.name == name)
