"""What of a source becomes items: one set of options for every source; each says which of them it has."""

from dataclasses import dataclass, fields
from pathlib import Path

from ....errors import ConfigError

CONDITIONS = ("text", "image", "text_image")
LEAST = {"limit": 1, "per_prompt": 1, "count": 0}
"""Option -> its least value."""
FLAGS = {"methods": "--method", "stories": "--story", "splits": "--split", "labels": "--label",
         "conditions": "--condition", "pairs": "--pair", "per_prompt": "--per-prompt"}  # fmt: skip
"""Option -> how it is written, where that is not its name."""


@dataclass(frozen=True, slots=True)
class DrawOptions:
    """What becomes items.

    Attributes:
        methods: only outputs of this method [all].
        stories: only this story, prompt or question [all].
        splits: only stories of this split [all].
        labels: only prompts with this label [all].
        limit: only the first N stories or prompts.
        per_prompt: methods drawn at random for each story or prompt [all].
        count: how many items, or parts of each kind, are drawn at random.
        conditions: evidence that people are given: text, image or text_image.
        pairs: two methods to compare, as METHOD:BASELINE.
        controls: share of answers among the items that are accepted ones, from 0 to 1 [0.1].
        outputs: outputs of one method, where the source does not hold or name them.
        release: the release that was judged, where the evaluation does not know where it is.
        human: what people said, JSONL or CSV, whose answers are drawn from as well.
        also: another evaluation folder to draw from.
        seed: seed of every draw.

    Raises:
        ConfigError: a number is out of its range, or a condition or a pair is none.
    """

    methods: tuple[str, ...] = ()
    stories: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    limit: int | None = None
    per_prompt: int | None = None
    count: int | None = None
    conditions: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    controls: float | None = None
    outputs: tuple[Path, ...] = ()
    release: Path | None = None
    human: Path | None = None
    also: tuple[Path, ...] = ()
    seed: int = 42

    def __post_init__(self) -> None:
        for name, least in LEAST.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise ConfigError(
                    flag_of(name), what=f"{value} is below {least}", fix=f"give a number from {least}"
                )
        if self.controls is not None and not 0.0 <= self.controls < 1.0:
            what = f"the share {self.controls:g} is not from 0 to below 1"
            raise ConfigError("--controls", what=what, fix="give a share, such as 0.1")
        for condition in self.conditions:
            if condition not in CONDITIONS:
                raise ConfigError(
                    "--condition", expected=f"one of {', '.join(CONDITIONS)}", found=repr(condition),
                    fix="choose one of them",
                )  # fmt: skip
        for pair in self.pairs:
            if ":" not in pair.strip(":"):
                raise ConfigError(
                    "--pair", expected="two methods as METHOD:BASELINE", found=repr(pair),
                    fix="name the method that should win first, then a colon, then what it is compared with",
                )  # fmt: skip

    @property
    def given(self) -> tuple[str, ...]:
        """The options that were given; the seed, which every source has, is left out."""
        return tuple(
            each.name
            for each in fields(self)
            if each.name != "seed" and getattr(self, each.name) != each.default
        )


def flag_of(option: str) -> str:
    """Return how an option is written on the command line."""
    return FLAGS.get(option, f"--{option}")
