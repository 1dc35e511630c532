"""The StoryEval prompt suite: prompts of a few consecutive events, keyed by the file name of their video.

The shape is the official ``all_prompts.json``. Semantic rules are elsewhere; unknown fields are kept.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from .canonical import digest
from .values import Own, Wire

PARTICIPANTS = ("human", "animal", "object")
ORIGINS = ("retrieval", "creative")
DIFFICULTIES = ("easy", "medium", "hard")
LONGEST_NAME = 202
"""Most characters of a video's file name; the longest of the official suite has as many."""


class EventPrompt(Wire):
    """One prompt of a suite."""

    prompt: str = Field(description="What the video model is asked for.")
    event_list: tuple[str, ...] = Field(
        min_length=1, description="The events in order, each as one statement."
    )
    labels: tuple[str, ...] = Field(
        alias="class", description="Participants, origin, difficulty, and the number of events."
    )


@dataclass(frozen=True)
class Suite:
    """A prompt suite."""

    prompts: Mapping[str, EventPrompt]  # file name of the video -> its prompt, in the order of the file

    def as_json(self) -> dict[str, Any]:
        """Return the suite as the official file has it."""
        return {name: prompt.as_json() for name, prompt in self.prompts.items()}

    def sha256(self) -> str:
        """Return what identifies the suite: the hash of its canonical JSON, whatever the file's layout."""
        return digest(self.as_json())

    def labels(self) -> tuple[str, ...]:
        """Return the labels in use: the known ones in their usual order, then the others sorted."""
        labels = {label for prompt in self.prompts.values() for label in prompt.labels}
        known = [label for label in (*PARTICIPANTS, *ORIGINS, *DIFFICULTIES) if label in labels]
        return (*known, *sorted(labels - set(known)))


def video_name(prompt: str) -> str:
    """Return the file name of a prompt's video: words joined by underscores, marks dropped, ``.mp4``.

    Letters of every script stay, as in the official names. Whole words are dropped from the end where the
    name would be longer than :data:`LONGEST_NAME` characters or 240 bytes; a prompt without any letter or
    digit gives ``.mp4``, which the caller has to refuse.
    """
    kept = re.sub(r"[^\w\s]|_", "", unicodedata.normalize("NFC", prompt))
    words = kept.split()
    while len(words) > 1 and _too_long("_".join(words)):
        words.pop()
    name = "_".join(words)
    while name and _too_long(name):
        name = name[:-1]
    return f"{name}.mp4"


def _too_long(stem: str) -> bool:
    return len(stem) > LONGEST_NAME - 4 or len(stem.encode("utf-8")) > 236


class SuiteRecord(Own):
    """One line of ``prompts.jsonl``: a prompt of a suite with its history."""

    unit: str = Field(description="File name of the prompt's video, which names the prompt.")
    entry: EventPrompt = Field(description="The prompt in the official form.")
    origin: Literal["retrieval", "brainstorm", "guided"] = Field(
        description="retrieval: it captions a real video; brainstorm: by people; guided: by a model."
    )
    producers: dict[str, str] = Field(description="Part of the entry -> who made it.")

    @property
    def built(self) -> bool:
        """Whether a build made name and events; whoever gives a suite may word both as they like."""
        return self.producers.get("event_list") != "given"

    def as_json(self) -> dict[str, Any]:
        """Return the record as plain JSON, the entry in its official form."""
        return {**super().as_json(), "entry": self.entry.as_json()}
