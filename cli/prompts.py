"""``fabula prompts``: the prompt files, their versions and content hashes."""

import typer

from .common import JsonOption, emit, example, guarded, say

app = typer.Typer(name="prompts", no_args_is_help=True, rich_markup_mode=None, help="The prompt files.")


@app.command("list", epilog=example("fabula prompts list --json"))
@guarded
def list_prompts(as_json: JsonOption = False) -> int:
    """List every prompt with its version and content hash."""
    from ..prompts.loader import load_prompt, prompt_ids

    rows = [
        {
            "id": prompt.card.id,
            "version": prompt.card.version,
            "sha256": prompt.sha256,
            "purpose": prompt.card.purpose,
        }
        for prompt in map(load_prompt, prompt_ids())
    ]
    if as_json:
        emit(rows)
    else:
        for row in rows:
            say(f"{row['id']}@{row['version']}  {str(row['sha256'])[:12]}  {row['purpose']}")
    return 0
