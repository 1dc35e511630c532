"""``fabula prompts``: the prompt files, their versions and content hashes; official prompts of others."""

import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError
from .command import command
from .common import answer, show

if TYPE_CHECKING:
    from ..builders.drafting import Preview
    from ..prompts.fetching import Official
    from ..prompts.loader import Prompt


@command("prompts list")
def list_prompts(*, as_json: bool = False) -> int:
    """List every prompt with its version and content hash.

    Examples:
        fabula prompts list --json
    """
    from ..prompts.loader import load_prompt, prompt_ids

    prompts = [load_prompt(name) for name in prompt_ids()]
    width = max(len(prompt.label) for prompt in prompts)
    lines = (f"{prompt.label:{width}}  {prompt.card.purpose}" for prompt in prompts)
    return answer([_summary(prompt) for prompt in prompts], lines, as_json=as_json)


@command("prompts show")
def show_prompt(prompt_id: str, *, as_json: bool = False) -> int:
    """Show the file of one prompt and the stages that use it.

    With --json, the reply schema is shown as it is sent, with the word lists filled in.

    Options:
        prompt_id: Prompt id, as fabula prompts list shows it.

    Examples:
        fabula prompts show katha/draft_scenes
        fabula prompts show scene_image --json
    """
    from ..prompts.loader import prompt_source

    prompt = _prompt(prompt_id)
    stages = _stages_using(prompt_id)
    text = prompt_source(prompt_id).decode("utf-8")
    reply = None if prompt.reply is None else prompt.reply.schema
    document = {**prompt.card.as_json(), **_summary(prompt), "reply": reply, "stages": stages, "text": text}
    lines = (prompt.label, f"stages: {', '.join(stages) or 'none'}", "", text)
    return answer(document, lines, as_json=as_json)


@command("prompts fetch", location="--from")
def fetch(
    name: str, *, location: str | None = None, accept_no_licence: bool = False, as_json: bool = False
) -> int:
    """Fetch the official prompts of a benchmark into the cache.

    ``evaluate --prompts official`` asks with them. The texts are read out of its public repository at a
    pinned commit, each file checked by SHA-256. Program code is read and never executed. Without --from, an
    archive of the commit is downloaded.

    Options:
        name: What to fetch: storyeval, vistorybench, entitybench or kathatrace.
        location: A clone, an archive (.zip, .tar.gz), a plain folder, or the address of an archive. Of
            kathatrace the text of the paper, which alone has its prompts.
        accept_no_licence: Also read texts of a repository without a licence.

    Examples:
        fabula prompts fetch storyeval
        fabula prompts fetch vistorybench --from ~/clones/vistorybench
        fabula prompts fetch entitybench --from entitybench-3776439.tar.gz --accept-no-licence
        fabula prompts fetch kathatrace --from paper.md
    """
    from ..prompts.fetching import fetch_prompts

    fetched = fetch_prompts(
        name, location, may_be_unlicensed=lambda source: accept_no_licence or _agrees(source)
    )
    show(fetched, as_json=as_json)
    return 0


def _agrees(source: "Official") -> bool:
    """Ask at a terminal whether texts without a licence are to be read; nobody there says no."""
    import sys

    import typer

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    said = f"{source.repository} has no licence: its authors did not allow any use of its texts."
    return typer.confirm(f"{said} Read them for your own runs all the same?", default=False, err=True)


@command("prompts render", stories="--stories")
def render(
    prompt_id: str,
    *,
    story: str,
    stories: Path | None = None,
    run: Path | None = None,
    config: Path | None = None,
    as_json: bool = False,
) -> int:
    """Show a prompt filled in for one story. Nothing is sent.

    Parts of the record that the prompt needs come from --run; without it, the rules planner drafts them.

    Options:
        prompt_id: Prompt id, as fabula prompts list shows it.
        story: Id of the story.
        stories: File or folder with the story [the sample stories].
        run: Run that has the story; its drafts are put into the prompt.
        config: Settings file; fabula.toml here is used if present.

    Examples:
        fabula prompts render katha/draft_scenes --story kb25k_0001 --stories stories.jsonl
        fabula prompts render katha/write_questions --story kb25k_0001 --run runs/mine --json
    """
    from ..kinds.verbs import preview_run, preview_story

    _prompt(prompt_id)
    if run is not None and stories is not None:
        raise ConfigError("--run", what="--run and --stories exclude each other", fix="leave one out")
    if run is not None:
        previews = preview_run(run, story, prompt_id)
    else:
        with _stories(stories) as path:
            previews = preview_story(path, story, prompt_id, config)
    lines = (line for preview in previews for line in _preview_lines(preview))
    return answer([_preview_json(preview) for preview in previews], lines, as_json=as_json)


@contextmanager
def _stories(named: Path | None) -> Iterator[Path]:
    """Give the file or folder with the stories: by default the samples that come with the package."""
    if named is not None:
        yield named
        return
    from importlib.resources import as_file, files

    with as_file(files("fabula.builders.katha") / "samples" / "stories.jsonl") as path:
        yield path


def _preview_json(preview: "Preview") -> dict[str, Any]:
    from ..models.prices import estimate_request

    return {
        "stage": preview.stage,
        "item": preview.item,
        "prompt": preview.prompt,
        "request": preview.request.canonical(),
        "estimated_input_tokens": estimate_request(preview.request),
    }


def _preview_lines(preview: "Preview") -> Iterator[str]:
    from ..models.prices import estimate_request

    request = preview.request
    yield f"{preview.prompt}, asked in {preview.stage} about {preview.item}"
    yield f"about {estimate_request(request)} tokens; at most {request.max_tokens} in the reply"
    for message in request.messages:
        yield f"\n===== {message.role} ====="
        yield from (part if isinstance(part, str) else f"[{part.media_type}]" for part in message.parts)
    yield ""


def _prompt(prompt_id: str) -> "Prompt":
    from ..prompts.loader import load_prompt, prompt_ids

    if prompt_id not in prompt_ids():
        near = difflib.get_close_matches(prompt_id, prompt_ids(), 3, 0.4)
        use = f"use one such as {', '.join(near)}; " if near else ""
        raise ConfigError(
            "prompt", what=f"there is no prompt {prompt_id!r}", fix=f"{use}fabula prompts list has all"
        )
    return load_prompt(prompt_id)


def _summary(prompt: "Prompt") -> dict[str, Any]:
    card = prompt.card
    return {"id": card.id, "version": card.version, "sha256": prompt.sha256, "purpose": card.purpose}


def _stages_using(prompt_id: str) -> list[str]:
    from ..engine.pipeline import load_pipeline
    from ..kinds.registry import every_run_kind

    return [
        f"{name}/{stage.name}"
        for name, run in every_run_kind()
        for stage in load_pipeline(run.pipeline).stages
        if prompt_id in (*stage.spec.prompts, *stage.spec.asks)
    ]
