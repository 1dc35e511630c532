"""``fabula models``: see whether a language model is ready to be worked with."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import ConfigError
from .common import ConfigOption, JsonOption, example, guarded, show

app = typer.Typer(
    name="models", no_args_is_help=True, rich_markup_mode=None, help="The language models that draft."
)


@app.callback()
def _group() -> None:
    """The language models that draft."""


@app.command(
    "check",
    epilog=example(
        "fabula models check openai:gpt-4.1-mini",
        "fabula models check http://localhost:8000/v1#qwen3-vl --config fabula.toml --json",
        "fabula models check embedding:openai:text-embedding-3-small",
    ),
)
@guarded
def check(
    spec: Annotated[
        str,
        typer.Argument(
            help="openai:NAME, google:NAME, anthropic:NAME or http(s)://HOST/v1#NAME; embedding: before it.",
            show_default=False,
        ),
    ],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> int:
    """Ask a model one small structured question, and show whether builders can work with it.

    Costs a fraction of a cent. Exits with 1 if the model cannot be used, with 3 if its key is missing.
    """
    from .model_check import check_model

    found = check_model(spec, _sections(config))
    show(found, as_json=as_json)
    return 0 if found.passed else 1


def _sections(named: Path | None) -> dict[str, Any]:
    """Return the settings of models that a settings file has: spec -> key -> value."""
    from ..engine.config import MODELS, read_settings

    path = named or Path("fabula.toml")
    if named is None and not path.is_file():
        return {}
    sections = read_settings(path).get(MODELS, {})
    if not isinstance(sections, dict):
        raise ConfigError(
            f"{path}: {MODELS}", expected='sections such as [models."openai:gpt-4.1-mini"]',
            found="a value", fix="see docs/models.md",
        )  # fmt: skip
    return sections
