"""What a judge replied and what a person said, a line of a file each; the manifest of an evaluation."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from .values import Own

JUDGEMENT_VERSION = "1"

Protocol = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]
"""Name of a judge protocol: katha, events, images, episodes, or that of a package."""
KINDS = (
    *("question", "moral_label", "contrast", "variant", "variant_question", "completion", "match"),
    *("alignment", "fidelity", "action", "pair", "location"),
)
Kind = Annotated[str, Field(pattern=rf"^({'|'.join(KINDS)}|[a-z0-9_-]+\.[a-z0-9_-]+)$")]
"""What is asked. What a package asks has a dot in its name, such as ``panels.order``."""
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
    protocol: Protocol = Field(
        description="katha (KathaTrace), events (StoryEval), images (ViStoryBench), episodes (EntityBench),"
        " or that of a package."
    )
    kind: Kind = Field(
        description="What was asked; match is a matcher's own verdict on an answer; with a dot: a package's."
    )
    method: str | None = Field(
        description="The method whose outputs were shown; null where none was, as under text-only evidence."
    )
    unit: str = Field(description="Story or episode id, or file name of the video in the suite.")
    seed: int | None = Field(
        description="Seed of the generation that was shown; null where there is one only."
    )
    item: str = Field(
        description="Question id, pair id, what of a shot or entity is rated, or the unit where it is asked"
        " one thing."
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
        document: dict[str, Any] = write(self)
        return {name: value for name, value in document.items() if (name, value) != ("attempt", 1)}

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
    kind: Protocol = Field(description="katha, events, images, episodes, or that of a package.")
    protocol: dict[str, Any] = Field(
        description="Hash of release or suite, stories, judges, votes, prompts, conditions, image settings."
    )
    subject: dict[str, Any] = Field(
        description="Methods, hash of their outputs, stories requested and valid."
    )
    environment: dict[str, Any] = Field(description="Versions, and where release and outputs were.")

    def about(self, method: str) -> Mapping[str, Any]:
        """Return what ``subject`` says of a method; nothing where it says nothing that is read here."""
        methods = self.subject.get("methods")
        told = methods.get(method) if isinstance(methods, Mapping) else None
        return told if isinstance(told, Mapping) else {}


HumanKind = Literal[
    "answer",
    "moral_label",
    "rating",
    "preference",
    "completion",
    "attention",
    "review",
    "equivalence",
    "audit",
]
Confidence = Literal["low", "medium", "high"]

NEEDED: dict[str, tuple[str, ...]] = {
    "answer": ("item", "condition", "answer"),
    "moral_label": ("item", "condition", "labels"),
    "rating": ("item", "method", "criterion", "value"),
    "preference": ("item", "method", "baseline", "criterion"),
    "completion": ("item", "method", "completion"),
    "attention": ("item", "value"),
    "review": ("item", "criterion"),
    "equivalence": ("item", "answer"),
    "audit": ("item", "criterion"),
}
"""Kind -> the columns that it cannot do without, besides ``kind`` and ``rater``."""
VALUES: dict[str, tuple[int, int]] = {
    "preference": (-2, 2), "attention": (0, 1), "review": (1, 5), "equivalence": (0, 1), "audit": (0, 1),
}  # fmt: skip
"""Kind -> least and greatest ``value``; what a rating may be depends on the evaluation."""


class HumanRow(Own):
    """One line of ``human.jsonl``; the columns of a CSV file have the same names.

    In CSV an empty cell is null, and the parts of a list are separated by ``|``.
    """

    kind: HumanKind = Field(description="What was asked.")
    rater: str = Field(min_length=1, description="Anonymised id of the person.")
    item: str | None = Field(
        default=None,
        description="Question id for an answer; story id for a moral label, a rating or a preference, or a "
        "shot such as 01/shot_03; file name of the video in the suite for a completion; the task of a study "
        "of episodes or videos; story id for a review; question id for an equivalence; the part of a draft "
        "for an audit; any id for an attention check.",
    )
    condition: Literal["text", "image", "text_image"] | None = Field(
        default=None, description="Evidence that the person saw; for answers and moral labels."
    )
    method: str | None = Field(
        default=None,
        description="Method whose output was shown; null under text-only evidence. Of a preference: the one "
        "that positive values favour.",
    )
    seed: int | None = Field(default=None, description="Seed of the generation, where there are several.")
    answer: str | None = Field(
        default=None,
        description="Free answer, or unclear. Of a preference without a value: unclear. Of a review: the "
        "word that was chosen. Of an equivalence: the answer that was shown. Of an audit: the reason "
        "for a no.",
    )
    labels: tuple[str, ...] = Field(
        default=(), max_length=3, description="Up to three moral labels, the likeliest first; or unclear."
    )
    criterion: str | None = Field(
        default=None,
        description="What was rated or compared, such as NCS, MAS, EES, visual, Q1 or Q15; of a review: the "
        "unit of the record (Table 18), or confidence; of an audit: the kind of part.",
    )
    part: str | None = Field(
        default=None,
        description="Of a review: which transition (1-2), question or variant of the record; null for "
        "the whole.",
    )
    value: int | None = Field(
        default=None,
        description="Rating 1 to 5, of shot images 0 to 4, of episodes 1 to 10 or a verdict 0 or 1; "
        "preference -2 to 2; attention check, equivalence or audit 1 (passed, same, sound) or 0; confidence "
        "of a review 1 to 5.",
    )
    baseline: str | None = Field(default=None, description="Method that negative values favour.")
    completion: tuple[Literal[0, 1], ...] = Field(
        default=(), description="For each event, whether it was completed."
    )
    confidence: Confidence | None = Field(default=None, description="How sure the person was.")
    seconds: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="How long the person took."
    )
    repeat: int = Field(default=0, ge=0, description="0, or which repetition of a control this is.")
    group: str | None = Field(default=None, description="Group of participants that the person belongs to.")
    at: str | None = Field(default=None, description="When it was said, RFC 3339, UTC.")
    protocol: str | None = Field(
        default=None, description="SHA-256 of the protocol under which it was said, for votes of a study."
    )
    simulated: bool = Field(default=False, description="Whether a program said it and no person.")
    seen_sha256: str | None = Field(
        default=None,
        pattern=r"^[0-9a-f]{64}$",
        description="Of a vote on a record: SHA-256 of all that the form showed; null where that is unknown.",
    )

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self) -> "HumanRow":
        for name in NEEDED[self.kind]:
            if getattr(self, name) in (None, (), ""):
                keyed = (self.kind, name) == ("completion", "method")
                unless = ", unless its item is a task whose key is given with --key" if keyed else ""
                raise ValueError(f"{name}: a line of kind {self.kind} needs it{unless}")
        shows = self.kind in ("answer", "moral_label") and self.condition != "text"
        if shows and not self.method:
            raise ValueError(f"method: a line of kind {self.kind} under {self.condition} needs it")
        if self.condition == "text" and self.method is not None:
            raise ValueError("method: nothing is shown under text-only evidence, so leave it empty")
        return self

    @model_validator(mode="after")
    def _values_are_in_range(self) -> "HumanRow":
        if self.kind == "preference" and (self.value is None) == (self.answer != "unclear"):
            raise ValueError("value: a preference has a value from -2 to 2, or else the answer unclear")
        if self.kind == "review" and (self.value is None) == (self.answer is None):
            raise ValueError("answer: a review has the word that was chosen, or else a value")
        if self.kind in VALUES and self.value is not None:
            low, high = VALUES[self.kind]
            if not low <= self.value <= high:
                raise ValueError(f"value: a {self.kind} goes from {low} to {high}, and this is {self.value}")
        if self.kind == "preference" and self.method == self.baseline:
            raise ValueError("baseline: a preference compares two methods, and these are the same")
        return self

    def place(self) -> tuple[str | int | None, ...]:
        """Return what no two lines of one person may share: the thing that was asked."""
        shown = (self.condition, self.method, self.seed, self.baseline)
        asked = self.answer if self.kind == "equivalence" else self.part
        return (self.rater, self.kind, self.item, self.criterion, *shown, asked, self.repeat)
