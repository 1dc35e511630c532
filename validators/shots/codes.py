"""Every code that the rules about shot scripts and their files report."""

from ...schemas.issue import Issue
from ..codes import SECRET_REMOVED, Code

_FILES = {
    "missing-script": Code("Every story has a story.json.", "write it, or remove the folder"),
    "encoding": Code("Files are UTF-8.", "save the file as UTF-8"),
    "byte-order-mark": Code(
        "Files start without a byte order mark.", "save the file as UTF-8 without BOM", "warning"
    ),
    "json": Code("A story.json holds one JSON object.", "correct the JSON"),
    "repeated-key": Code("No key occurs twice, so no two characters have one name.", "rename one of the two"),
    "shape": Code("Fields have the types of the format.", "give the field the type that the format asks for"),
    "repeated-story": Code("Numbers of stories differ as numbers.", "rename one of the two folders"),
    "stray-file": Code(
        "A set holds the folders of stories, a story its script and its images.",
        "move it elsewhere",
        "warning",
    ),
    "unsafe-name": Code(
        "The name of a character can be that of a folder below image/.",
        "rename the character: no .., no empty part, no drive, no control characters",
    ),
    "unknown-folder": Code(
        "Every folder below image/ is a character's.", "rename the folder to the character's key", "warning"
    ),
    "no-reference": Code("Every character has a reference image.", "add one to its folder", "warning"),
    "many-references": Code("A character has at most 10 reference images.", "keep the best ones", "warning"),
    "unreadable-picture": Code("Reference images can be decoded.", "replace the image"),
    "odd-picture": Code("Reference images are what their names say.", "have a look at it", "warning"),
    "small-picture": Code(
        "Reference images have 64 pixels a side or more.", "replace it by a larger one", "warning"
    ),
    "no-rights": Code(
        "Every reference image that is imported says on what ground it may be used.",
        "give --rights, or a line with its rights in references.jsonl",
    ),
    "nobody-seen": Code(
        "The detector that was asked finds a face or a character in every reference image.",
        "have a look at it, or choose another picture",
        "warning",
    ),
    "repeated-picture": Code("No two reference images are the same file.", "keep one of them", "warning"),
}

_SCRIPT = {
    "secret-removed": SECRET_REMOVED,
    "no-shots": Code("A script has a shot.", "write its shots"),
    "shot-count": Code("A story has 4 to 30 shots.", "split or join shots", "warning"),
    "shots-from-zero": Code("Shots are numbered from 1.", "add 1 to every index"),
    "shot-order": Code("Shots are numbered 1, 2, 3, ... in order, each once.", "number them in order"),
    "missing-field": Code("A shot has all five fields.", "write the field"),
    "language-key": Code("The key of Chinese is ch.", "rename zh to ch"),
    "one-language": Code("Every text is there in both languages.", "translate it", "warning"),
    "language-letters": Code(
        "Chinese texts are in Chinese characters, English ones are not.", "put each under its own key",
        "warning",
    ),
    "plot-coverage": Code(
        "The plots of the shots tell the whole story in order.", "divide the story again"
    ),
    "list-length": Code("Both lists of characters on stage are of one length.", "give both the same names"),
    "onstage-language": Code(
        "Both lists name the same characters in the same order.",
        "use the characters' Chinese names, in the order of the English list",
        "warning",
    ),
    "onstage-list": Code("Characters Appearing holds lists.", "split the names into a list"),
    "onstage-count": Code("A shot has 0 to 3 characters on stage.", "split the shot", "warning"),
    "onstage-repeated": Code("A character is on stage once.", "remove the second mention", "warning"),
    "onstage-unknown": Code("Characters on stage are keys of Characters.", "correct the name"),
    "onstage-unnamed": Code(
        "The static description names who is on stage.", "name the character, or take it off", "warning"
    ),
    "offstage-named": Code(
        "The static description names nobody who is off stage.",
        "put the character on stage, or describe the still without it",
        "warning",
    ),
    "setting-character": Code(
        "A setting names no character.", "describe the place alone", "warning"
    ),
    "tag": Code("A character's tag is one of the three.", "set it to one of the listed values"),
    "repeated-name": Code(
        "No two characters of a story have one name.", "give one of them another name", "warning"
    ),
    "character-text": Code("A character has a name and a description.", "write it", "warning"),
    "appearances": Code(
        "num_of_appearances is the number of shots with the character.", "recompute it", "warning"
    ),
    "never-onstage": Code("Every character is on stage in some shot.", "remove it or use it", "warning"),
    "camera": Code(
        "A perspective is made of a shot distance, an angle and a camera type of the word lists.",
        "use the listed words, separated by commas",
        "warning",
    ),
    "camera-distance": Code("A perspective names its shot distance.", "name one of the six", "warning"),
    "camera-repeated": Code(
        "Neighbouring shots differ in distance, angle or type.", "change one of the two", "warning"
    ),
    "camera-jump": Code(
        "No shot jumps between wide shot and close up.", "put a shot between, or choose a nearer one",
        "warning",
    ),
    "camera-language": Code("Both languages name the same perspective.", "correct one of them", "warning"),
}  # fmt: skip

_FACTS = {
    "facts-line": Code(
        "Lines of stories.jsonl and references.jsonl have their form, each story once.", "correct the line"
    ),
    "facts-story": Code(
        "Facts are about stories of the set.", "correct the id, or remove the line", "warning"
    ),
    "facts-character": Code("Facts are about characters of the script.", "correct the key", "warning"),
    "facts-word": Code(
        "Styles, cultures and genders are words of the lists.",
        "use a listed word; `fabula schemas words` prints them",
        "warning",
    ),
    "facts-realistic": Code(
        "Humans of a realistic story are realistic, of another one they are not.",
        "correct the tag, or what stories.jsonl says",
        "warning",
    ),
}

CODES: dict[str, Code] = {**_FILES, **_SCRIPT, **_FACTS}
"""Code -> its meaning, cure and level."""


def issue(code: str, where: str, path: str, message: str) -> Issue:
    """Return an issue with the cure and level of its code."""
    known = CODES[code]
    return Issue(where, path, code, message, known.cure, known.level)
