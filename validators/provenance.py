"""The three provenance hashes of a record (paper, A.16): written by the builder, checked by a rule."""

from collections.abc import Mapping, Sequence

from ..schemas.canonical import Json, digest


def record_hashes(record: Mapping[str, Json], variants: Sequence[Mapping[str, Json]]) -> dict[str, str]:
    """Return the provenance hashes of a record, as SHA-256 of canonical JSON (64 hexadecimal digits).

    Args:
        record: a KathaBench record; ``story_id``, ``language``, ``source_text``, ``title``, ``scenes``,
            ``transitions`` and ``questions`` are read.
        variants: the story's contrastive variants, in any order, as they are published.

    Returns:
        ``source_prompt_hash``: id, language and source text, which stay as they were handed in.
        ``source_annotations_sha256``: title, scenes, transitions and questions, which may be corrected. (The
            record does not keep the title that was handed in, so that it cannot be part of the former.)
        ``source_contrastives_sha256``: the variants, sorted by ``variant_id``.

    Raises:
        KeyError: one of these fields is missing.
    """
    prompt = {
        "id": record["story_id"],
        "language": record["language"],
        "text": record["source_text"],
    }
    annotations = {name: record[name] for name in ("title", "scenes", "transitions", "questions")}
    contrastives = sorted(variants, key=lambda variant: str(variant["variant_id"]))
    return {
        "source_prompt_hash": digest(prompt),
        "source_annotations_sha256": digest(annotations),
        "source_contrastives_sha256": digest(contrastives),
    }
