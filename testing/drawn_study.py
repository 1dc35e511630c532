"""Drawn studies for tests: all types of questions, two storyboards side by side, a video to watch."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..people.review.design import Plan
from ..people.review.folder import Study, StudyPlan, make_study
from ..people.review.items import Drawn, Part, Value
from ..people.review.plan import Rules
from .drawn import draw_panel, write_video

ALL_TYPES = """{#---
id: all-types
version: 1
title: {en: "Stories and pictures", zh: "故事与图片"}
instructions:
  en: |-
    Read the story and look at the pictures. Then answer every question.

    - Use only what you see here.
    - Choose Unclear where you cannot tell.
  zh: |-
    请阅读故事并查看图片，然后回答每个问题。

    - 只根据这里看到的内容回答。
    - 无法判断时请选择“不清楚”。
source: tests
draws: tests
texts:
  story: {en: "The story", zh: "故事"}
  record: {en: "The record", zh: "记录"}
sections:
  record: {en: "The record", zh: "记录"}
  each: {en: "Its questions", zh: "其中的问题"}
questions:
  - name: sound
    type: choice
    section: record
    title: {en: "Does the record describe the story?", zh: "记录是否符合故事？"}
    help: {en: "Compare every field with the story.", zh: "请逐一核对字段。"}
    unclear: true
    options:
      - {value: "yes", text: {en: "Yes", zh: "是"}}
      - {value: "no", text: {en: "No", zh: "否"}}
  - name: edits
    type: edits
    section: record
    title: {en: "What should stand there instead?", zh: "应改为什么？"}
    when: {sound: ["no"]}
  - name: quality
    type: scale
    section: record
    title: {en: "How good is the picture story?", zh: "图片故事好不好？"}
    options:
      - {value: 1, text: {en: "Poor", zh: "很差"}}
      - {value: 2, text: {en: "Fair", zh: "较差"}}
      - {value: 3, text: {en: "Good", zh: "一般"}}
      - {value: 4, text: {en: "Very good", zh: "较好"}}
      - {value: 5, text: {en: "Excellent", zh: "很好"}}
  - name: moral
    type: labels
    section: record
    title: {en: "What does the story teach?", zh: "故事说明了什么？"}
    most: 3
    unclear: true
    options:
      - {value: honesty, text: {en: "honesty", zh: "诚实"}}
      - {value: patience, text: {en: "patience", zh: "耐心"}}
      - {value: courage, text: {en: "courage", zh: "勇敢"}}
      - {value: wisdom, text: {en: "wisdom", zh: "智慧"}}
      - {value: self_control, text: {en: "self-control", zh: "自制"}}
  - name: answer
    type: text
    section: each
    each: questions
    title: {en: "Your answer", zh: "您的回答"}
    unclear: true
  - name: confidence
    type: choice
    section: each
    each: questions
    optional: true
    title: {en: "How sure are you?", zh: "您有多大把握？"}
    options:
      - {value: low, text: {en: "Not sure", zh: "没把握"}}
      - {value: high, text: {en: "Sure", zh: "有把握"}}
---#}
{% import "evidence.j2" as show with context %}
{{ show.sides(sides) }}
{% call show.section(text(words.story)) %}{{ show.story(texts.scenes, marked=[2]) }}{% endcall %}
{% call show.section(text(words.record)) %}{{ show.fields(texts.record) }}{% endcall %}
"""
COMPARED = """{#---
id: compared
version: 1
title: {en: "Two picture stories", zh: "两组图片"}
instructions: {en: "Look at both sides. Then say which is better.", zh: "请看两边，然后选择较好的一边。"}
source: tests
draws: tests
evidence: image
questions:
  - name: better
    type: scale
    title: {en: "Which side tells the story better?", zh: "哪一边讲得更好？"}
    options: &sides
      - {value: 2, text: {en: "Left, clearly", zh: "左边明显"}}
      - {value: 1, text: {en: "Left, slightly", zh: "左边略微"}}
      - {value: 0, text: {en: "No difference", zh: "没有差别"}}
      - {value: -1, text: {en: "Right, slightly", zh: "右边略微"}}
      - {value: -2, text: {en: "Right, clearly", zh: "右边明显"}}
    unclear: true
  - name: nicer
    type: scale
    title: {en: "Which side looks better?", zh: "哪一边更好看？"}
    options: *sides
    unclear: true
---#}
{% import "evidence.j2" as show with context %}
{{ show.sides(sides) }}
"""
WATCHED = """{#---
id: watched
version: 1
title: {en: "A video"}
instructions: {en: "Watch the video. Then answer."}
source: tests
draws: tests
watched: true
questions:
  - name: whole
    type: choice
    title: {en: "Did something happen?"}
    options:
      - {value: "yes", text: {en: "Yes"}}
      - {value: "no", text: {en: "No"}}
---#}
{% import "evidence.j2" as show with context %}
{{ show.sides(sides) }}
"""
TASKS = {"all-types": ALL_TYPES, "compared": COMPARED, "watched": WATCHED}
SCENES = (
    "A crow flew over dry fields. It had not drunk since the morning.",
    "It found a jar, and there was a little water at the bottom. Its beak did not reach it.",
    "The crow looked about. Pebbles lay on the path.",
    "One by one it dropped them into the jar, until the water had risen to the rim.",
)
CONSENT = {
    "en": "We ask how well picture stories tell a story.\n\nYour answers are kept under a pseudonym.",
    "zh": "我们想了解图片故事讲得好不好。\n\n您的回答会以化名保存。",
}
EXPERTISE = {
    "none": {"en": "None", "zh": "没有"},
    "some": {"en": "I have done such work before", "zh": "做过类似的工作"},
}


def draw_study(
    folder: Path,
    task: str = "all-types",
    *,
    items: int = 3,
    training: int = 1,
    block: int = 20,
    settings: Mapping[str, Any] | None = None,
) -> Study:
    """Make a study of drawn pictures in a new folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{task}.j2"
    path.write_text(TASKS[task], "utf-8")
    draw = {"all-types": _story, "compared": _pair, "watched": _film}[task]
    listed = [draw(folder, number) for number in range(1, items + 1)]
    taught = [replace(draw(folder, items + number), **_TAUGHT[task]) for number in range(1, training + 1)]
    fields = {"consent": CONSENT, "expertise": EXPERTISE, **(settings or {})}
    plan = StudyPlan(
        "drawn", "Which pictures tell the story?", str(path), Plan(seed=42, raters=2, least=2, block=block),
        Rules(), "2026-01-01T00:00:00Z", settings=fields,
    )  # fmt: skip
    return make_study(folder / "study", plan, listed, taught)


_TAUGHT: Mapping[str, Mapping[str, Any]] = {
    "all-types": {
        "expected": {"sound": ("yes",), "quality": (4, 5)},
        "explained": {"en": "The record says what the story says.", "zh": "记录与故事一致。"},
    },
    "compared": {"expected": {"better": (1, 2)}},
    "watched": {},
}


def _pictures(folder: Path, number: int, count: int, side: str = "") -> tuple[Path, ...]:
    paths = []
    for turn in range(1, count + 1):
        path = folder / f"{number:02}{side}-{turn}.png"
        draw_panel(turn + number, (320, 240)).save(path)
        paths.append(path)
    return tuple(paths)


def _story(folder: Path, number: int) -> Drawn:
    return Drawn(
        f"kb25k_{number:04}", f"story-{number}",
        texts={"scenes": list(SCENES), "record": [
            ["Title", f"The Crow and the Jar {number}"], ["Setting", "dry fields"],
            ["Characters", ["a crow"]], ["Scenes", len(SCENES)], ["Moral", None],
        ]},
        sides=(_pictures(folder, number, 4),),
        parts={"questions": (
            Part(id=f"q-{number}-1", text="Why did the crow want to drink?", detail=("Cause",)),
            Part(id=f"q-{number}-2", text="What did the crow do with the pebbles?"),
        )},
        values=(
            Value(path="/title", label="Title", value=f"The Crow and the Jar {number}"),
            Value(path="/scenes", label="Number of scenes", value=len(SCENES), takes="number"),
            Value(path="/characters", label="Characters", value=["a crow"], takes="texts"),
            Value(path="/turns", label="Turning points", value=[2], takes="numbers", optional=True),
            Value(path="/moral", label="Moral", value=None, options=(None, "patience", "wisdom")),
        ),
    )  # fmt: skip


def _pair(folder: Path, number: int) -> Drawn:
    sides = (_pictures(folder, number, 3, "a"), _pictures(folder, number + 3, 3, "b"))
    return Drawn(f"kb25k_{number:04}", f"story-{number}", sides=sides, methods=("plain", "planned"))


def _film(folder: Path, number: int) -> Drawn:
    path = write_video(folder / f"{number:02}.mp4", 6, fps=8, size=(320, 240))
    return Drawn(f"film_{number:04}", f"story-{number}", sides=((path,),), methods=("plain",))
