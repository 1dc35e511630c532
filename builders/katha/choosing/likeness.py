"""Stages: which stories are alike: of near-duplicates one stays, retellings stay in one split."""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from pydantic import Field

from ....engine.stage import Ask, BadReply, Item, Made, NoAnswer, Outcome, Tools, stage
from ....models.chat import encode_request, packed, unpacked
from ....models.spec import ENCODES, ModelSettings
from ....schemas.canonical import Json
from ....schemas.values import Own
from ....validators.retellings import (
    DEFAULT_THRESHOLD,
    MEANING,
    SHARED,
    Link,
    Traces,
    links_between,
    links_by_meaning,
    near_duplicates,
    signature,
)

# -- By what a story may be known again: a MinHash signature, its title, its numbers, its word groups


@stage(version=3, reads=("story", "source"), writes=("signature", "traces"), libraries=("datasketch",))
def sign_stories(item: Item, tools: Tools) -> Outcome:
    """Return the signature, a list of integers, and the traces."""
    story = item["story"]
    text = story["normalized_text"]
    number = (item["source"] or {}).get("catalogue_number")
    traces = Traces.of(story["title"], text, story["source_reference"], number)
    return Made({"signature": signature(text), "traces": traces.as_json()})


# -- Near-duplicates within and across sources. Of each group one story stays, the others name it
# A story that stayed before goes on to stay when near-duplicates of it are added; among new ones the smallest
# id stays. So a story that was published is not pushed out by one that came later.


class DuplicateSettings(Own):
    threshold: float = Field(
        default=DEFAULT_THRESHOLD, gt=0, le=1, description="Estimated Jaccard similarity."
    )


@stage(
    version=1,
    shape="gather",
    reads=("signature",),
    writes=("duplicate_of",),
    libraries=("datasketch",),
    settings=DuplicateSettings,
    stateful=True,
)
def find_duplicates(items: Iterable[Item], tools: Tools) -> Mapping[str, Mapping[str, Json]]:
    """Return for each story null, or the kept story that it nearly equals and how nearly.

    The stories that stayed before come first, then the others, both in order of ids: a story that nearly
    equals a kept one is a duplicate of the most similar such story.
    """
    settings = tools.own(DuplicateSettings)
    signatures = {item.id: item["signature"] for item in items}
    stayed = {key for key, fields in tools.previous.items() if fields["duplicate_of"] is None}
    order = sorted(signatures, key=lambda story_id: (story_id not in stayed, story_id))
    near: dict[str, list[tuple[float, str]]] = {}
    # Pairs are found and sorted under ranks: of equal texts only the first is paired with all the others.
    ranked = {f"{rank:09d}": signatures[story_id] for rank, story_id in enumerate(order)}
    for first, second, similarity in near_duplicates(ranked, settings.threshold):
        near.setdefault(order[int(second)], []).append((-similarity, order[int(first)]))
    result: dict[str, Mapping[str, Json]] = {}
    for story_id in order:
        found = [pair for pair in near.get(story_id, ()) if result[pair[1]]["duplicate_of"] is None]
        if found:
            similarity, other = min(found)
            result[story_id] = {"duplicate_of": {"id": other, "similarity": round(-similarity, 4)}}
        else:
            result[story_id] = {"duplicate_of": None}
    return result


# -- The vector of a story, where an encoder is set: what is told alike lies near, in whatever words

# -- Vectors of texts, for stages in which an encoder is set

_NONE = frozenset({"refused", "blocked", "truncated", "empty", "malformed", "bad_request", "too_long"})


async def encode_text(tools: Tools, encoder: str, text: str) -> str | None:
    """Return the packed vector of a text (see :mod:`fabula.models.chat`); None where there is none."""
    assert tools.asker is not None and isinstance(tools.settings, ModelSettings)
    request = encode_request(encoder, text)
    try:
        answer = await tools.asker.ask(Ask(request, _read, "", repairs=0, sample=tools.settings.sample))
    except NoAnswer as missed:
        if missed.code not in _NONE:
            raise
        return None
    return answer.value


def _read(text: Json) -> str:
    try:
        return packed(unpacked(text).tolist())
    except ValueError as error:
        raise BadReply(str(error)) from error


# -- The vector of a story, where an encoder is set


class VectorSettings(ModelSettings):
    encodes: ClassVar[bool] = True

    model: str | None = Field(
        default=None, pattern=f"^{ENCODES}", description="Encoder, such as embedding:openai:NAME."
    )
    characters: int = Field(default=6000, ge=100, description="So much of a story is encoded.")


@stage(version=1, reads=("story",), writes=("vector",), settings=VectorSettings)
async def embed_stories(item: Item, tools: Tools) -> Outcome:
    """Return the packed vector of the story; null without an encoder, and where it gave none."""
    settings = tools.own(VectorSettings)
    if tools.asker is None or settings.model is None:
        return Made({"vector": None})
    text = item["story"]["normalized_text"][: settings.characters]
    return Made({"vector": await encode_text(tools, settings.model, text)})


# -- Which stories retell another one, by title, catalogue number, words and, with an encoder, meaning
# Nothing is turned away for it. ``assign_splits`` keeps what is linked in one split.


class RetellingSettings(Own):
    titles: bool = Field(default=True, description="Stories of the same title are one story.")
    numbers: bool = Field(default=True, description="Stories of the same catalogue number are one story.")
    shared: float = Field(
        default=SHARED, gt=0, le=1, description="Share of common word groups from which two are one story."
    )
    meaning: float = Field(
        default=MEANING, gt=0, le=1, description="Cosine of vectors from which two are one story."
    )


@stage(version=1, shape="gather", reads=("traces", "vector"), writes=("links",), settings=RetellingSettings)
def find_retellings(items: Iterable[Item], tools: Tools) -> Mapping[str, Mapping[str, Json]]:
    """Return for each story its links to stories of smaller ids: ``stories``, ``by`` and ``evidence``."""
    settings = tools.own(RetellingSettings)
    traces, vectors = {}, {}
    for item in items:
        traces[item.id] = Traces.from_json(item["traces"])
        if item["vector"] is not None:
            vectors[item.id] = item["vector"]
    unwanted = {name for name in ("title", "number") if not getattr(settings, f"{name}s")}
    links: list[Link] = [link for link in links_between(traces, settings.shared) if link.by not in unwanted]
    links += links_by_meaning(vectors, settings.meaning)
    rows: dict[str, list[Json]] = {key: [] for key in traces}
    for link in sorted(links):
        rows[link.second].append(link.as_json())
    return {key: {"links": own} for key, own in rows.items()}
