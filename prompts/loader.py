"""Loading of prompt templates: front matter, strict inputs, and the hash that a run records."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from ..schemas.base import Own
from ..schemas.canonical import Json, sha256_bytes

if TYPE_CHECKING:
    from jinja2 import Template

_OPEN, _CLOSE = "{#---\n", "\n---#}\n"


class PromptCard(Own):
    """The front matter of a prompt file."""

    id: str
    version: int
    purpose: str
    inputs: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt template.

    Attributes:
        card: its front matter.
        sha256: hash of the whole file, in hexadecimal; what a run records.
    """

    card: PromptCard
    sha256: str
    template: "Template"

    def render(self, **inputs: Json) -> str:
        """Return the prompt's text for exactly the declared inputs, without space at its ends.

        Raises:
            ValueError: an input is missing or is not declared.
        """
        if inputs.keys() != set(self.card.inputs):
            raise ValueError(
                f"prompt {self.card.id} takes exactly the inputs {sorted(self.card.inputs)},"
                f" not {sorted(inputs)}"
            )
        return self.template.render(**inputs).strip()


def prompt_ids() -> tuple[str, ...]:
    """Return the ids of all prompts, sorted."""
    names = (entry.name for entry in files(__package__).iterdir())
    return tuple(sorted(name.removesuffix(".j2") for name in names if name.endswith(".j2")))


@cache
def load_prompt(prompt_id: str) -> Prompt:
    """Return a prompt by id.

    Raises:
        KeyError: there is no such prompt.
        ValueError: its front matter is missing, incomplete or names another id.
    """
    import jinja2
    import yaml

    if prompt_id not in prompt_ids():
        raise KeyError(f"no prompt {prompt_id!r}; there are: {', '.join(prompt_ids())}")
    data = (files(__package__) / f"{prompt_id}.j2").read_bytes()
    head, mark, body = data.decode("utf-8").replace("\r\n", "\n").partition(_CLOSE)
    if not mark or not head.startswith(_OPEN):
        raise ValueError(
            f"prompt {prompt_id}: the file must start with front matter between {{#--- and ---#}}"
        )
    card = PromptCard.model_validate(yaml.safe_load(head.removeprefix(_OPEN)))
    if card.id != prompt_id:
        raise ValueError(f"prompt {prompt_id}: its front matter says id {card.id!r}")
    # A prompt is plain text for a model, not HTML: escaping would change the story.
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
    )
    return Prompt(card, sha256_bytes(data), environment.from_string(body))
