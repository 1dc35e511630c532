"""The text side of CLIP: texts become vectors in the space of its pictures.

The network reads 77 tokens, two of which mark the ends. What does not fit is cut off behind, and how much
that was is told for every text: prompts of shots are often longer.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .devices import Place, library, missing
from .networks import settled, unit_rows
from .types import TextRows
from .weights import Source, load_pretrained

_ENDS = 2


class TextTower:
    """The text tower of a CLIP model with its tokenizer.

    Args:
        module: the network of transformers.
        tokenizer: of the same model.
        place: where it runs.
    """

    def __init__(self, module: Any, tokenizer: Any, place: Place) -> None:  # noqa: ANN401 - the library's
        self._module, self._tokenizer, self._place = module, tokenizer, place
        self._length: int = module.config.max_position_embeddings

    def encode(self, texts: Sequence[str]) -> TextRows:
        """Return unit vectors of texts, and how many tokens of each were cut off."""
        torch = library()
        told = [self._tokens(text) for text in texts]
        with torch.inference_mode():
            ids = torch.tensor([ids for ids, _ in told], device=self._place.device)
            # Causal attention: what stands behind the end of a text changes nothing before it.
            rows = self._module(input_ids=ids).text_embeds.float().cpu().numpy()
        return TextRows(unit_rows(np.asarray(rows, dtype=np.float32)), tuple(cut for _, cut in told))

    def _tokens(self, text: str) -> tuple[list[int], int]:
        """Return a text as tokens of the network's full length, and how many were cut off."""
        start, end = self._tokenizer.bos_token_id, self._tokenizer.eos_token_id
        found = self._tokenizer.encode(text, add_special_tokens=False, verbose=False)
        found = [one for one in found if one not in (start, end)]  # a text may spell them out
        kept = found[: self._length - _ENDS]
        ids = [start, *kept, end]
        return ids + [end] * (self._length - len(ids)), len(found) - len(kept)


def load_text_tower(place: Place, source: Source, local: Path | None) -> TextTower:
    """Return the text tower of a CLIP model with its projection.

    Raises:
        MissingRequirement: a library or the weights are missing, or they are those of another model.
    """
    try:
        from transformers import CLIPTextModelWithProjection, CLIPTokenizer
    except ImportError as error:
        raise missing("transformers") from error
    tokenizer = load_pretrained(CLIPTokenizer, source, local)
    module = load_pretrained(CLIPTextModelWithProjection, source, local)
    return TextTower(settled(module, place), tokenizer, place)
