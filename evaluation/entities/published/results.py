"""The public evaluator's result of one episode: what its JSON files hold, as far as scores need it."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ....schemas.values import Wire

Count = Annotated[int, Field(strict=True, ge=0)]
Real = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class Counted(Wire):
    """A metric's value in an episode, with its counters."""

    value: Real | None = Field(default=None, description="The value; null where nothing contributed.")
    n_evaluated: Count = Field(description="What contributed.")
    n_failed: Count = Field(description="What failed.")
    n_skipped: Count = Field(description="What was left out.")


class Near(Wire):
    """How near an appearance is to its entity's centroid."""

    shot: str = Field(description="Key of the shot.")
    sim_to_centroid: Real = Field(description="Cosine.")
    clip_text_sim: Real | None = Field(default=None, description="Similarity of crop and description.")


class JudgedPair(Wire):
    """What the judge said of an appearance beside the anchor."""

    later_shot: str = Field(description="Key of the shot.")
    similarity: Real = Field(description="From 0 to 1.")
    is_same: bool = Field(strict=True, description="Whether it is the same.")


class PublicEntity(Wire):
    """One recurring entity."""

    mean_sim_to_centroid: Real | None = None
    min_sim_to_centroid: Real | None = None
    max_sim_to_centroid: Real | None = None
    pairwise_median_sim: Real | None = None
    representative_shot: str | None = None
    worst_shot: str | None = None
    per_shot_sim_to_centroid: tuple[Near, ...] = ()
    vlm_anchor_shot: str | None = None
    vlm_pair_count: Count = 0
    vlm_pair_accuracy: Real | None = None
    vlm_per_pair_sims: tuple[JudgedPair, ...] = ()

    def shots(self) -> set[str]:
        """Return every shot that is named."""
        named = {shot for shot in (self.vlm_anchor_shot, self.representative_shot, self.worst_shot) if shot}
        near = {each.shot for each in self.per_shot_sim_to_centroid}
        return named | near | {each.later_shot for each in self.vlm_per_pair_sims}


class PublicGap(Wire):
    """How alike two crops of an entity are, and how far apart their shots."""

    entity_name: str = Field(min_length=1)
    entity_type: Literal["character", "object"]
    gap: Annotated[int, Field(strict=True, ge=1)]
    similarity: Real


class PublicResult(Wire):
    """One file: an episode."""

    episode_id: str = Field(min_length=1, description="The episode.")
    tier: str | None = Field(default=None, description="Its tier.")
    num_shots: Count = Field(default=0, description="How many shots it has.")
    vbench_means: dict[str, Counted] = Field(default_factory=dict, description="Quality, by measure.")
    metrics: dict[str, Counted] = Field(default_factory=dict, description="All else, by metric.")
    per_entity_scores: dict[str, PublicEntity] = Field(default_factory=dict, description="By type and name.")
    gap_decay_data: tuple[PublicGap, ...] = Field(default=(), description="Pairs of crops.")

    @model_validator(mode="before")
    @classmethod
    def _without_paths(cls, given: Any) -> Any:  # noqa: ANN401 - any JSON
        """Leave out where files were on the machine that made it."""
        entities = given.get("per_entity_scores") if isinstance(given, dict) else None
        if not isinstance(entities, dict):
            return given
        kept = {
            name: {key: value for key, value in each.items() if not key.endswith("_path")}
            if isinstance(each, dict)
            else each
            for name, each in entities.items()
        }
        return {**given, "per_entity_scores": kept}
