"""A comic page: a few panels of one story in reading order, and the questions that they must answer.

The panels take the place of scenes (KathaTrace, L.4), so the types are those of KathaBench records: panels,
transitions and questions are numbered within the page and bear its id as their ``story_id``.
"""

from pydantic import Field

from fabula.schemas.canonical import canonical_bytes, digest, sha256_bytes
from fabula.schemas.katha import EvidenceStatus, Provenance, Question, Scene, StoryRecord, Transition
from fabula.schemas.values import Own

COMICS = "comics"
"""The name of the kind."""
PAGES = "pages.jsonl"
"""The file of runs and releases with one page a line."""
SPLIT = "test"
"""The one split: no page is for training."""


class ComicPage(Own):
    """One page."""

    page_id: str = Field(description="Id of the page: that of its story, and its number.")
    story_id: str = Field(description="Id of the story.")
    page_number: int = Field(ge=1, description="Place of the page in its story, counted from 1.")
    title: str = Field(description="Title of the story.")
    language: str = Field(description="BCP 47 language tag.")
    text: str = Field(description="The part of the story that the page tells.")
    source_collection: str = Field(description="Source family of the story.")
    rights_status: str = Field(description="Rights-screening result of the story.")
    panels: tuple[Scene, ...] = Field(description="Panels in reading order.")
    transitions: tuple[Transition, ...] = Field(description="From each panel to the next.")
    questions: tuple[Question, ...] = Field(description="Recoverability questions that the page can answer.")
    producers: dict[str, str] = Field(description="Part -> who drafted it.")


def as_story(page: ComicPage, created_at: str) -> StoryRecord:
    """Return a page as the record that the recoverability protocol judges: its panels are the scenes."""
    content = page.as_json()
    return StoryRecord(
        story_id=page.page_id,
        title=page.title,
        language=page.language,
        source_text=page.text,
        story_text=page.text,
        narrative_type=None,
        moral_label=None,  # a page seldom shows a whole moral
        split=SPLIT,
        scenes=page.panels,
        transitions=page.transitions,
        questions=page.questions,
        provenance=Provenance(
            source_dataset=page.source_collection,
            source_reference=None,
            source_prompt_hash=sha256_bytes(page.text.encode()),
            source_annotations_sha256=digest(content),
            source_contrastives_sha256=sha256_bytes(canonical_bytes([])),
            contrastive_variant_ids=(),
            created_at=created_at,
            source_rights_status=page.rights_status,
            dataset_license=None,
        ),
        validation_status="drafted",
        evidence_status=EvidenceStatus(human_evidence_accepted=False, resolution="not_reviewed"),
    )
