"""Every code that the rules about episode scripts, their registries and split files report."""

from ...schemas.issue import Issue
from ..codes import SECRET_REMOVED, Code

_FILES = {
    "unreadable": Code(
        "Scripts and split files can be read.", "check the file, its link and its permissions"
    ),
    "too-large": Code("A file has at most 5 MB.", "one episode per file; remove what is no script"),
    "encoding": Code("Files are UTF-8.", "save the file as UTF-8"),
    "byte-order-mark": Code(
        "Files start without a byte order mark.", "save the file as UTF-8 without BOM", "warning"
    ),
    "json": Code("A file holds one whole JSON object.", "correct the JSON, or copy the file again"),
    "repeated-key": Code("No key occurs twice in an object.", "keep one of the two, or rename it"),
    "shape": Code("Fields have the types of the format.", "give the field the type that the format asks for"),
    "stray-file": Code(
        "A set holds scripts/*.json and splits/*.json.", "move it elsewhere; it is not taken along", "warning"
    ),
    "unknown-field": Code(
        "Scripts have no fields beyond the format; such fields are kept.",
        "remove the field, or keep it knowingly",
        "warning",
    ),
}

_SCRIPT = {
    "missing-key": Code("Every key of the format is there.", "add the key"),
    "missing-note": Code(
        "The keys with _, which say where an episode is from, are there.", "add the key", "warning"
    ),
    "story-name": Code("story_name is the stem of the file.", "rename the file, or correct story_name"),
    "unsafe-name": Code(
        "The id of an episode can be the name of a file.",
        "use letters, digits, _ - and . only: no slashes, no control characters",
    ),
    "no-shots": Code("An episode has scenes, and every scene a shot.", "write the shots, or remove it"),
    "scene-order": Code("Scenes are numbered 1, 2, 3, ... in order.", "number them in order"),
    "list-length": Code(
        "video_prompts, cut and action_descriptions of a scene have one length.", "one element per shot"
    ),
    "schedule-key": Code(
        "The keys of the schedule are the shots, each once.", "name every shot as <scene>:<shot>, from 1"
    ),
    "schedule-order": Code("The schedule is in story order.", "sort its keys by scene and shot", "warning"),
    "stated-count": Code("_num_scenes and _num_shots are right.", "count again"),
    "window-length": Code("_window_shot_ids names one shot of the source per shot.", "name one per shot"),
    "window-id": Code("_window_shot_ids have the form <episode>__shot0001.", "correct the id", "warning"),
    "window-order": Code("_window_shot_ids ascend.", "sort the shots as the source has them", "warning"),
    "window-gap": Code(
        "_window_shot_ids are contiguous.", "have a look: shots of the source were left out", "warning"
    ),
    "first-cut": Code("The first shot of a scene is a cut.", "set cut to true there", "warning"),
    "secret-removed": SECRET_REMOVED,
    "empty-text": Code("Overview, prompts and actions say something.", "write the text"),
    "repeated-action": Code("No two shots of the set have the same action.", "rewrite one", "warning"),
    "window-overlap": Code(
        "No two episodes are of overlapping windows <source>__i<first>_j<last>__T<seconds> of one source.",
        "count them as one source where episodes are to be independent",
        "warning",
    ),
}

_REGISTRY = {
    "label-key": Code("The label of an entity is its key in the registry.", "use the same text"),
    "label-form": Code(
        "Labels are Character N, Location N or Object N.", "number the entity within its type", "warning"
    ),
    "generated-label": Code(
        "No label is Gen_<name>: the type of such an entity shows in no label.",
        "give it a label of its type",
        "warning",
    ),
    "label-gap": Code("Labels of a type are numbered without a hole.", "number them again", "warning"),
    "registry-order": Code(
        "The registry lists characters, locations, objects.", "sort it by type", "warning"
    ),
    "registry-name": Code("Every entity of the registry has a name.", "write its name"),
    "name-repeated": Code("No name has two labels.", "join the two, or tell them apart", "warning"),
    "name-case": Code("No two names differ only in case.", "tell them apart by more", "warning"),
    "name-ascii": Code(
        "Names are in ASCII, which looks the same wherever it is typed, compared or made a file name.",
        "have a look: keep what the language asks for",
        "warning",
    ),
    "name-contained": Code(
        "No name is contained in another one of the episode, so that a mention is of one of them.",
        "rename one of the two",
        "warning",
    ),
    "description-empty": Code("Every entity has a description.", "describe what it looks like"),
    "description-lines": Code("A description is one line.", "join its lines", "warning"),
    "description-short": Code(
        "A description has more than 3 words.", "say more of what it looks like", "warning"
    ),
    "description-long": Code(
        "A description has at most 12 words, all of which a grounding query takes.",
        "begin with what tells the entity apart",
        "warning",
    ),
    "description-tokens": Code(
        "A description and the two marks around it fit into the 77 tokens of a CLIP text.",
        "shorten it: models of this kind refuse it or cut it off",
        "warning",
    ),
    "description-period": Code("A description ends with a period.", "add the period", "warning"),
    "description-repeated": Code(
        "No two entities of an episode have the same description.", "tell them apart", "warning"
    ),
    "name-map": Code("_name_map and the registry give a label the same name.", "correct one of them"),
    "name-map-extra": Code(
        "_name_map has no label that the registry does not have.",
        "remove it, or keep it knowingly",
        "warning",
    ),
    "name-map-missing": Code("_name_map has every label of the registry.", "add it", "warning"),
}

_SCHEDULE = {
    "unregistered": Code(
        "Every scheduled name is in the registry.", "add it to the registry, or take it off the schedule"
    ),
    "type-mismatch": Code("A name is scheduled in the list of its label's type.", "move it, or relabel it"),
    "slot-repeated": Code("A name is scheduled once in a list.", "remove the second one"),
    "two-lists": Code("A name is in one list of a shot.", "keep it in one"),
    "two-types": Code("A name is in one kind of list in the whole episode.", "keep it in one"),
    "never-scheduled": Code(
        "Every entity of the registry is scheduled in some shot.", "schedule it, or remove it", "warning"
    ),
    "no-character": Code(
        "A shot has a character.", "have a look: that nobody is seen may be meant", "warning"
    ),
    "no-place": Code("A shot has a place.", "schedule one", "warning"),
    "several-places": Code("A shot has one place.", "keep the one that is seen", "warning"),
    "empty-shot": Code("A shot schedules something.", "schedule what its action shows", "warning"),
}

_TEXTS = {
    "mention-case": Code(
        "A scheduled entity is named in the action as the schedule writes it.",
        "write the name as it is",
        "warning",
    ),
    "mention-part": Code(
        "A scheduled entity is named in the action, not only by a word of its name.",
        "write the name as it is",
        "warning",
    ),
    "unmentioned": Code(
        "A scheduled entity is named in the action.", "name it, or take it off the schedule", "warning"
    ),
    "unscheduled-mention": Code(
        "An entity whose name is in the action is scheduled.", "schedule it, or take it out", "warning"
    ),
    "back-ticks": Code("Actions have no back-ticks around names.", "remove them", "warning"),
    "action-ascii": Code(
        "Actions are in ASCII: other characters may be pictograms, or quotes of what is to be written.",
        "have a look: keep what the language asks for",
        "warning",
    ),
    "placeholder": Code("No action names an entity by its label, such as Character 3.", "write the name"),
    "prompt-action": Code("A prompt ends with the action of its shot.", "write the action at its end"),
    "header-separator": Code("A blank line parts header and action.", "put one between them", "warning"),
    "header-missing": Code(
        "The prompt of the shot in which an entity is first scheduled describes it.",
        "add a line <name>: <description>",
        "warning",
    ),
    "header-elsewhere": Code(
        "A header describes an entity in the shot in which it is first scheduled.", "move the line", "warning"
    ),
    "header-unscheduled": Code(
        "A header describes no entity that is never scheduled.", "schedule it, or remove the line", "warning"
    ),
    "header-repeated": Code(
        "A header describes each entity once in an episode.", "keep the first", "warning"
    ),
    "header-decorated": Code(
        "A line of a header begins with the bare name.", "remove what is added to the name", "warning"
    ),
    "header-line": Code(
        "A line of a header is <name>: <description>, with a name of the registry.",
        "correct the line, or register the name",
        "warning",
    ),
    "header-order": Code("A header lists characters, locations, objects.", "sort its lines", "warning"),
    "header-period": Code(
        "A description in a header is that of the registry; here only a final period differs.",
        "copy it from the registry",
        "warning",
    ),
    "header-description": Code(
        "A description in a header is that of the registry.", "copy it from the registry", "warning"
    ),
}

_SPLITS = {
    "split-object": Code(
        "The items of a split are ids; an object is kept, and its episode_id is taken.",
        "replace it by its episode_id: other programs take it for a file name",
        "warning",
    ),
    "split-unknown": Code("Splits name episodes that are there.", "add the script, or remove the id"),
    "split-repeated": Code("An episode is in one tier of a split, once.", "keep one"),
    "split-all": Code("all holds the other tiers in order.", "write all from the tiers"),
    "no-tier": Code(
        "Every episode is in a tier of the splits.", "add it to a split, or remove its script", "warning"
    ),
}

CODES: dict[str, Code] = {**_FILES, **_SCRIPT, **_REGISTRY, **_SCHEDULE, **_TEXTS, **_SPLITS}
"""Code -> its meaning, cure and level."""

BLOCKING = frozenset(
    {
        *("unreadable", "too-large", "encoding", "json", "repeated-key", "shape", "unsafe-name"),
        *("no-shots", "scene-order", "list-length", "schedule-key", "story-name", "secret-removed"),
    }
)
"""Codes of what cannot be released: files of no use, and episodes whose shots cannot be told."""


def issue(code: str, where: str, path: str, message: str) -> Issue:
    """Return an issue with the cure and level of its code."""
    known = CODES[code]
    return Issue(where, path, code, message, known.cure, known.level)
