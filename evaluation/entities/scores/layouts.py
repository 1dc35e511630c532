"""The tables of the EntityBench paper as data: which metrics stand in which rows, under which headings."""

from dataclasses import dataclass

from ..entities import ACTION_CRITERIA, CRITERIA, QUALITY
from ..metrics.decay import Signal

Rows = tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """Rows of a table under one heading."""

    heading: str  # what stands above them; empty for nothing
    rows: Rows  # names of metrics, or their short names where the table has these


@dataclass(frozen=True)
class Layout:
    """One table whose rows are metrics."""

    name: str  # in files, such as ``table_4``
    title: str  # its caption
    sections: tuple[Section, ...]  # its rows
    note: str = ""  # what a reader must know


def _within(word: str, criteria: Rows) -> Rows:
    return (f"intra_{word}_fidelity", *(f"intra_{word}_{name}" for name in criteria))


def _across(word: str, criteria: Rows) -> Rows:
    return tuple(f"llm_{word}_{name}" for name in ("accuracy", "mean_score", *criteria))


PRESENCE = ("intra_character_presence", "intra_object_presence", "intra_location_presence")
CHARACTER_FIDELITY = _within("face", CRITERIA["character"])
OBJECT_FIDELITY = _within("object", CRITERIA["object"])
LOCATION_FIDELITY = _within("location", CRITERIA["location"])
ACTION = tuple(f"intra_action_{name}" for name in ("overall", "depicted", *ACTION_CRITERIA))
DINO = ("cs_face", "cs_object", "cs_transition_boundary")
LLM_CHARACTERS = _across("face", CRITERIA["character"])
LLM_OBJECTS = _across("object", CRITERIA["object"])
LLM_SCENES = _across("scene", CRITERIA["location"])

TABLE_4 = Layout(
    "table_4",
    "Table 4: main results",
    (
        Section("P1: Quality", ("imaging_quality", "aesthetic_quality", "motion_smoothness")),
        Section("P2: Presence", ("char_presence", "obj_presence", "loc_presence")),
        Section("P2: Fidelity (overall)", ("face_fidelity", "object_fidelity", "location_fidelity")),
        Section("P2: Action", ("action_overall", "action_subject", "action_interaction")),
        Section("P3: DINOv2 similarity", DINO),
        Section("P3: LLM characters", LLM_CHARACTERS[:3]),
        Section("P3: LLM objects", LLM_OBJECTS[:3]),
        Section("P3: LLM scenes", LLM_SCENES[:3]),
    ),
    "imaging_quality is of 0 to 100, all others are of 0 to 1.",
)
TABLE_12 = Layout(
    "table_12", "Table 12: pillar 1, quality within shots", (Section("", QUALITY),), TABLE_4.note
)
TABLE_13 = Layout(
    "table_13",
    "Table 13: pillar 2, following the prompt within shots",
    (
        Section("Presence (3 metrics)", PRESENCE),
        Section("Character fidelity (5 metrics)", CHARACTER_FIDELITY),
        Section("Object fidelity (5 metrics)", OBJECT_FIDELITY),
        Section("Location fidelity (5 metrics)", LOCATION_FIDELITY),
        Section("Action correctness (6 metrics)", ACTION),
    ),
)
TABLE_14 = Layout(
    "table_14",
    "Table 14: pillar 3, consistency across shots",
    (
        Section("DINOv2 embedding similarity (3 metrics)", DINO),
        Section("LLM characters (6 metrics)", LLM_CHARACTERS),
        Section("LLM objects (6 metrics)", LLM_OBJECTS),
        Section("LLM scenes (6 metrics)", LLM_SCENES),
    ),
)
TABLE_15 = Layout(
    "table_15",
    "Table 15: raw means and coverage",
    (
        Section(
            "Pillar 2: fidelity within shots",
            (CHARACTER_FIDELITY[0], OBJECT_FIDELITY[0], LOCATION_FIDELITY[0]),
        ),
        Section("Pillar 3: DINOv2 across shots", DINO),
        Section("Pillar 3: LLM across shots", (LLM_CHARACTERS[0], LLM_OBJECTS[0])),
    ),
    "The paper has no row of scenes and none of actions.",
)
CATEGORIES = (
    Section("Character fidelity (intra-shot)", CHARACTER_FIDELITY),
    Section("Character presence", PRESENCE[:1]),
    Section("Action overall & sub-criteria", ACTION),
    Section("Location fidelity (intra-shot)", LOCATION_FIDELITY),
    Section("LLM character (cross-shot)", LLM_CHARACTERS),
    Section("Object presence", PRESENCE[1:2]),
    Section("Object fidelity (intra-shot)", OBJECT_FIDELITY),
    Section("DINOv2 cross-shot (face / object / boundary)", DINO),
    Section("LLM object (cross-shot)", LLM_OBJECTS),
    Section("LLM scene (cross-shot)", LLM_SCENES),
    Section("VBench intra-shot quality (Pillar 1)", QUALITY),
    Section("Location presence (not in the paper's table)", PRESENCE[2:]),
)
"""The rows of Table 5, and what it leaves out."""
EFFECTS = (
    Layout("table_16", "Table 16: pillar 1, effect sizes", TABLE_12.sections, TABLE_4.note),
    Layout("table_17", "Table 17: pillar 2, effect sizes", TABLE_13.sections),
    Layout("table_18", "Table 18: pillar 3, effect sizes", TABLE_14.sections),
)
BY_TIER = (PRESENCE[0], CHARACTER_FIDELITY[0], ACTION[0], DINO[0], LLM_CHARACTERS[0], LLM_OBJECTS[0])
"""The metrics of Table 22."""
GAPS_BY_TIER = (*BY_TIER[:3], *BY_TIER[4:], BY_TIER[3])
"""The metrics of Table 23."""
CURVES: tuple[tuple[str, str, tuple[tuple[str, Signal], ...]], ...] = (
    ("table_19", "Table 19: similarity of characters by gap, as judged", (("LLM", "judged"),)),
    ("table_20", "Table 20: DINOv2 similarity of characters by gap", (("DINOv2", "centroid"),)),
    ("table_21", "Table 21: similarity of characters by gap", (("LLM", "judged"), ("DINOv2", "centroid"))),
)
"""Name, title and signals of the tables of gap decay; each signal under its word there."""
