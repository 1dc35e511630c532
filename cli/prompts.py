"""``fabula prompts``: the prompt files, their versions and content hashes."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ConfigError
from .common import JsonOption, emit, example, guarded, say

if TYPE_CHECKING:
    from ..prompts.loader import Prompt

app = typer.Typer(name="prompts", no_args_is_help=True, rich_markup_mode=None, help="The prompt files.")

PromptArgument = Annotated[
    str, typer.Argument(help="Prompt id, as fabula prompts list shows it.", show_default=False)
]


@app.command("list", epilog=example("fabula prompts list --json"))
@guarded
def list_prompts(as_json: JsonOption = False) -> int:
    """List every prompt with its version and content hash."""
    from ..prompts.loader import load_prompt, prompt_ids

    prompts = [load_prompt(name) for name in prompt_ids()]
    if as_json:
        emit([_summary(prompt) for prompt in prompts])
    else:
        width = max(len(prompt.label) for prompt in prompts)
        for prompt in prompts:
            say(f"{prompt.label:{width}}  {prompt.card.purpose}")
    return 0


@app.command(
    "show", epilog=example("fabula prompts show katha/draft_scenes", "fabula prompts show scene_image --json")
)
@guarded
def show_prompt(prompt_id: PromptArgument, as_json: JsonOption = False) -> int:
    """Show one prompt: its file as it is, and the stages that use it.

    With --json, the reply schema is the one that is sent, with the word lists filled in.
    """
    from ..prompts.loader import prompt_source

    prompt = _prompt(prompt_id)
    stages = _stages_using(prompt_id)
    text = prompt_source(prompt_id).decode("utf-8")
    if as_json:
        card = prompt.card.as_json()
        reply = None if prompt.reply is None else prompt.reply.schema
        emit({**card, **_summary(prompt), "reply": reply, "stages": stages, "text": text})
    else:
        say(f"{prompt.label}\nstages: {', '.join(stages) or 'none'}\n\n{text}")
    return 0


def _prompt(prompt_id: str) -> "Prompt":
    from ..prompts.loader import load_prompt, prompt_ids

    if prompt_id not in prompt_ids():
        raise ConfigError(
            "prompt", expected=f"one of {', '.join(prompt_ids())}", found=repr(prompt_id),
            fix="use one of these ids",
        )  # fmt: skip
    return load_prompt(prompt_id)


def _summary(prompt: "Prompt") -> dict[str, Any]:
    card = prompt.card
    return {"id": card.id, "version": card.version, "sha256": prompt.sha256, "purpose": card.purpose}


def _stages_using(prompt_id: str) -> list[str]:
    from ..builders.registry import BUILDERS
    from ..engine.pipeline import load_object, load_pipeline

    return [
        f"{kind}/{stage.name}"
        for kind, place in BUILDERS
        for stage in load_pipeline(load_object(place)).stages
        if prompt_id in (*stage.spec.prompts, *stage.spec.asks)
    ]
