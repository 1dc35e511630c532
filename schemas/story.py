"""A source story, as an author hands it in."""

from pydantic import Field

from .base import Own


class Story(Own):
    """A source story.

    ``text`` is kept exactly as it was given; ``normalized_text`` is what the builders work on.
    """

    id: str = Field(description="Story id.")
    title: str = Field(description="Title.")
    language: str = Field(description="BCP 47 language tag.")
    text: str = Field(description="The text, untouched.")
    normalized_text: str = Field(description="NFC, control characters removed, white space collapsed.")
    source_collection: str = Field(description="Source family; see the vocabulary source_dataset.")
    source_reference: str | None = Field(description="Where in the collection, such as an index number.")
    rights_status: str = Field(description="Rights-screening result; see the vocabulary rights_status.")
    narrative_type: str | None = Field(default=None, description="Given by the author, if at all.")
    moral_label: str | None = Field(default=None, description="Given by the author, if at all.")
    dataset_license: str | None = Field(default=None, description="Licence that its record is to have.")
