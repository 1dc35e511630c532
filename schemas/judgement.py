"""One reply of a judge, as ``judgements.jsonl`` keeps it; and the manifest of an evaluation.

The archive is all that scoring reads besides the release or the suite: whoever has it can compute every
number again, also from replies that somebody else published.
"""

from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from .base import Own

JUDGEMENT_VERSION = "1"

Protocol = Literal["katha", "events", "images"]
Kind = Literal["question", "moral_label", "contrast", "completion", "match", "alignment"]
Condition = Literal["text", "image", "text_image", "video"]
JudgementOutcome = Literal["answered", "refused", "blocked", "truncated", "malformed", "failed"]


class Judge(Own):
    """Who answered."""

    spec: str = Field(description="Model spec, such as google:gemini-2.5-flash; a person's group for people.")
    provider: str = Field(description="Who serves the model, such as google.")
    model: str = Field(description="The model's name at that service.")
    reported_model: str | None = Field(description="The model that the service says it used.")


class Judgement(Own):
    """One reply: one line of ``judgements.jsonl``."""

    schema_version: str = Field(default=JUDGEMENT_VERSION, description="Version of this form.")
    protocol: Protocol = Field(description="katha (KathaTrace), events (StoryEval) or images (ViStoryBench).")
    kind: Kind = Field(description="What was asked; match is a matcher's own verdict on an answer.")
    method: str | None = Field(
        description="The method whose outputs were shown; null where none was, as under text-only evidence."
    )
    unit: str = Field(description="Story id, or file name of the video in the suite.")
    seed: int | None = Field(
        description="Seed of the generation that was shown; null where there is one only."
    )
    item: str = Field(
        description="Question id, pair id, what of a shot is rated, or the unit where it is asked one thing."
    )
    condition: Condition = Field(description="Evidence condition.")
    judge: Judge = Field(description="Who answered.")
    vote: int = Field(ge=0, description="Which answer of this judge to this question, from 0.")
    attempt: int = Field(
        default=1, ge=1, description="Which attempt at this answer; of several the last counts. Absent is 1."
    )
    prompt: str = Field(description="Prompt as id@version#hash; empty where it is not known.")
    outcome: JudgementOutcome = Field(description="What came back.")
    reason: str | None = Field(description="Why there is no answer.")
    raw: str | None = Field(description="The reply as it came; null where there was none.")
    parsed: dict[str, Any] | None = Field(description="What was read from it; null where nothing could be.")
    input_tokens: int | None = Field(description="As the service counted them.")
    output_tokens: int | None = Field(description="As the service counted them.")
    cost: float | None = Field(description="USD, where the price is known.")
    time: str | None = Field(description="When the run was created, RFC 3339, UTC.")

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        told: dict[str, Any] = write(self)
        return {name: value for name, value in told.items() if (name, value) != ("attempt", 1)}

    def key(self) -> tuple[str | None, str, int | None, str, str, str, str, int, int]:
        """Return what no two judgements of an archive may share."""
        return (*self.asked(), self.attempt)

    def asked(self) -> tuple[str | None, str, int | None, str, str, str, str, int]:
        """Return what all attempts at the same vote share."""
        shown = (self.method, self.unit, self.seed)
        return (*shown, self.kind, self.item, self.condition, self.judge.spec, self.vote)


class EvaluationManifest(Own):
    """``evaluation.json``: what an archive is, in the three parts that comparing needs.

    ``protocol`` must be equal for two evaluations to be compared, ``subject`` is what is compared,
    ``environment`` is only told.
    """

    schema_version: str = Field(default="1", description="Version of this form.")
    kind: Protocol = Field(description="katha, events or images.")
    protocol: dict[str, Any] = Field(
        description="Hash of release or suite, stories, judges, votes, prompts, conditions, image settings."
    )
    subject: dict[str, Any] = Field(
        description="Methods, hash of their outputs, stories requested and valid."
    )
    environment: dict[str, Any] = Field(description="Versions, and where release and outputs were.")
