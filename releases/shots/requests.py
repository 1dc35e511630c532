"""What a generator is given for each shot: one line of JSON with prompt, references and context.

Generators differ in what they take. The options say how a script is adapted, as the source system did for
each of them (ViStoryBench, supplement sections F.2 to F.5): which parts of the text and how much of it, how
many reference images, whether earlier shots are shown. What was left out is stated in the line.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...errors import ConfigError
from ...schemas.canonical import Json
from ...schemas.shots import Shot
from .tree import ShotSet, ShotStory

PARTS = ("perspective", "plot", "static", "characters", "setting")
"""The parts of a prompt in their usual order."""
LANGUAGES = ("en", "ch")


@dataclass(frozen=True)
class RequestOptions:
    """How scripts are adapted to a generator.

    Attributes:
        language: language of the prompts, ``en`` or ``ch``.
        parts: part of the prompt: perspective, plot, static, characters, setting; in this order [all].
        max_chars: most characters of a prompt; what is beyond is cut at a space and counted [all].
        references: most reference images of a shot [all]. Of too many characters those that appear most often
            in the script go first, and among equals those that the script names first.
        per_character: reference images of each character, its first ones.
        previous: how many earlier shots the generator is shown.
        width: width of the pictures, in pixels; with the height 16:9 or nearly so.
        height: height of the pictures, in pixels.
        seed: seed of the first shot of each story; every shot adds 1.
    """

    language: str = "en"
    parts: tuple[str, ...] = PARTS
    max_chars: int | None = None
    references: int | None = None
    per_character: int = 1
    previous: int = 0
    width: int = 1344
    height: int = 768
    seed: int = 42

    def checked(self) -> "RequestOptions":
        """Return the options after checking them."""
        if self.language not in LANGUAGES:
            raise _wrong("--language", f"one of {', '.join(LANGUAGES)}", self.language)
        unknown = [part for part in self.parts if part not in PARTS]
        if unknown or not self.parts:
            raise _wrong("--part", f"some of {', '.join(PARTS)}", ", ".join(unknown) or "none")
        for name, least in (
            ("max_chars", 1), ("references", 0), ("per_character", 1), ("previous", 0), ("width", 64),
            ("height", 64), ("seed", 0),
        ):  # fmt: skip
            value = getattr(self, name)
            if value is not None and value < least:
                raise _wrong(f"--{name.replace('_', '-')}", f"{least} or more", str(value))
        return self


def shot_requests(shot_set: ShotSet, options: RequestOptions | None = None) -> Iterator[Json]:
    """Yield one request per shot, in order.

    A request holds ``story_id``, ``shot``, ``language``, ``prompt``, ``cut`` (how many characters were cut
    off the prompt), ``references`` (``character``, and ``file`` below the set's folder), ``left_out`` (who is
    on stage without a reference in the line), ``previous`` (numbers of the shots shown), ``width``,
    ``height`` and ``seed``.
    """
    options = (options or RequestOptions()).checked()
    for story in shot_set.stories:
        rank = _ranks(story)
        for shot in story.script.shots:
            yield _request(story, shot, rank, options)


def _request(story: ShotStory, shot: Shot, rank: Mapping[str, int], options: RequestOptions) -> Json:
    prompt = _prompt(story, shot, options)
    kept, cut = cut_at_space(prompt, options.max_chars)
    shown = _references(story, shot, rank, options)
    cast = [key for key in dict.fromkeys(story.script.cast(shot)) if key in story.script.characters]
    return {
        "story_id": story.story_id,
        "shot": shot.index,
        "language": options.language,
        "prompt": kept,
        "cut": cut,
        "references": shown,
        "left_out": [key for key in cast if key not in {one["character"] for one in shown}],
        "previous": list(range(max(1, shot.index - options.previous), shot.index)),
        "width": options.width,
        "height": options.height,
        "seed": options.seed + shot.index - 1,
    }


def _prompt(story: ShotStory, shot: Shot, options: RequestOptions) -> str:
    texts = {
        name: getattr(shot, name).of(options.language) if getattr(shot, name) is not None else ""
        for name in ("perspective", "plot", "static", "setting")
    }
    cast = dict.fromkeys(story.script.cast(shot))
    sheets = [story.script.characters[key] for key in cast if key in story.script.characters]
    described = [
        f"{sheet.name(options.language)}: {sheet.prompt(options.language)}".strip(": ") for sheet in sheets
    ]
    texts["characters"] = "\n".join(filter(None, described))
    return "\n".join(text.strip() for text in (texts[part] for part in options.parts) if text.strip())


def cut_at_space(prompt: str, most: int | None) -> tuple[str, int]:
    """Return a prompt of at most so many characters, cut between words, and how many are cut."""
    if most is None or len(prompt) <= most:
        return prompt, 0
    kept = prompt[:most]
    if not prompt[most].isspace() and any(char.isspace() for char in kept):
        kept = kept[: max(place for place, char in enumerate(kept) if char.isspace())]
    kept = kept.rstrip()
    return kept, len(prompt) - len(kept)


def _ranks(story: ShotStory) -> dict[str, int]:
    counts = story.script.appearances()
    order = sorted(counts, key=lambda key: -counts[key])  # stable: equals stay in the script's order
    return {key: place for place, key in enumerate(order)}


def _references(
    story: ShotStory, shot: Shot, rank: Mapping[str, int], options: RequestOptions
) -> list[dict[str, str]]:
    cast = sorted({key for key in story.script.cast(shot) if key in rank}, key=lambda key: rank[key])
    shown = [
        {"character": key, "file": f"{image.story_id}/{image.file}"}
        for key in cast
        for image in story.references.get(key, ())[: options.per_character]
    ]
    return shown if options.references is None else shown[: options.references]


def _wrong(option: str, expected: str, found: str) -> ConfigError:
    return ConfigError(option, expected=expected, found=found, fix="correct the option")
