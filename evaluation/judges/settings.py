"""Settings of the stages that choose what is judged and ask judges."""

from collections import Counter
from typing import Any, ClassVar, Self

from pydantic import Field, field_validator, model_validator

from ...models.settings import ModelSettings
from ...models.spec import ENCODES, parse_spec
from ...schemas.base import Own
from ...schemas.judgement import Judge
from ..judging.settings import MAIN, PromptSet


class SelectionSettings(Own):
    """Which stories of a release are judged; every condition must hold."""

    split: tuple[str, ...] = Field(default=(), description="Only stories of these splits; none: of all.")
    subset: str | None = Field(
        default=None, description="Only the stories that this file of the release lists, without its ending."
    )
    stories: tuple[str, ...] = Field(default=(), description="Only stories with these ids; none: all.")
    limit: int | None = Field(default=None, ge=1, description="Only the first so many of those, by id.")

    @field_validator("split", "stories", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: Any) -> Any:  # noqa: ANN401 - any TOML value
        return (value,) if isinstance(value, str) else value


class JudgeSettings(ModelSettings):
    """Who is asked, and how often. A stage without judges asks nobody."""

    encodes: ClassVar[bool] = False
    """Whether those that are asked give vectors, and no answers."""
    keeps_unanswered: ClassVar[bool] = True

    judges: tuple[str, ...] = Field(default=(), description="Model specs of the judges.")
    votes: int = Field(default=1, ge=1, le=100, description="Answers of each judge to each question.")

    @field_validator("judges", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: Any) -> Any:  # noqa: ANN401 - any TOML value
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _judges_are_told_apart(self) -> Self:
        if self.model is not None:
            raise ValueError("judges are named by the setting judges, not by model")
        for spec in self.judges:
            if parse_spec(spec).encodes != self.encodes:
                raise ValueError(
                    f"{spec} gives {_gives(not self.encodes)}; {_gives(self.encodes)} are wanted here"
                )
        names = Counter(public_judge(spec).spec for spec in self.judges)
        twice = [name for name, count in names.items() if count > 1]
        if twice:
            raise ValueError(f"each judge once; {', '.join(twice)} is there more than once")
        return self

    def models(self) -> tuple[str, ...]:
        """Return the specs of all judges."""
        return self.judges

    def for_judge(self, spec: str) -> ModelSettings:
        """Return the settings with which one judge is asked."""
        shared = {name: getattr(self, name) for name in ModelSettings.model_fields}
        return ModelSettings.model_validate(shared | {"model": spec})


class WordedSettings(JudgeSettings):
    """The same for a stage whose prompts come in several wordings."""

    prompts: PromptSet = Field(default=MAIN, description="Which set of judges' prompts is used.")


class ScanSettings(Own):
    """Settings of the leakage scan: it scans what the judges would be sent."""

    prompts: PromptSet = Field(default=MAIN, description="Which set of judges' prompts is used.")


class LabelledSettings(WordedSettings):
    """The same for a stage that also asks for the moral target of each story."""

    labels: bool = Field(default=True, description="Whether the moral target is asked for (Eq. 39).")


class MatcherSettings(JudgeSettings):
    """The same for the stage that compares answers: one matcher, asked once."""

    @model_validator(mode="after")
    def _one_verdict(self) -> Self:
        if len(self.judges) > 1 or self.votes != 1:
            raise ValueError("one matcher, and one verdict on each answer")
        return self


class VectorSettings(MatcherSettings):
    """The same for the stage that compares the vectors of answers: one encoder."""

    encodes: ClassVar[bool] = True

    threshold: float = Field(
        default=0.8,
        ge=-1,
        lt=1,
        description="An answer nearer than this to an accepted one is right (cosine).",
    )


def _gives(vectors: bool) -> str:
    return "vectors" if vectors else "answers"


def public_judge(spec: str) -> Judge:
    """Return a judge as archives name it: where a server is reached is nobody else's business.

    Raises:
        ConfigError: the spec has no valid form.
    """
    read = parse_spec(spec)
    before = ENCODES if read.encodes else ""
    named = read.text if read.base_url is None else f"{before}{read.provider}:{read.name}"
    return Judge(spec=named, provider=read.provider, model=read.name, reported_model=None)
