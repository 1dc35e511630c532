"""What building a suite asks of the engine: sources, settings and options in the engine's terms."""

from collections.abc import Sequence
from pathlib import Path

from ...engine.config import resolve_config
from ...engine.execute import RunRequest, Source, check_sources, execute
from ...engine.manifest import NAME as MANIFEST
from ...engine.run_options import setting_texts
from ...errors import ConfigError
from .grading import RESULTS, write_results
from .options import SuiteOptions
from .pipeline import PIPELINE


def suite_request(seeds: Sequence[Path | str], out: Path | str, options: SuiteOptions) -> RunRequest:
    """Return what the engine is to execute.

    Raises:
        ConfigError: a setting or an option is wrong, or no seeds are named.
    """
    if not seeds:
        raise ConfigError("seeds", what="no file is given", fix="name a file of seeds")
    toml = options.settings_file
    given: dict[str, object] = {}
    if options.model is not None:
        given |= {"write_prompts.model": options.model, "list_events.model": options.model}
    if options.generate is not None:
        given["load_seeds.generate"] = options.generate
    if options.keep_all is not None:
        given["load_seeds.keep_all"] = options.keep_all
    if options.most is not None:
        given["select_prompts.most"] = options.most
    return RunRequest(
        folder=Path(out),
        pipeline=PIPELINE,
        config=resolve_config(
            PIPELINE,
            toml,
            [*setting_texts(given), *options.texts],
            options.models,
            others=options.others,
        ),
        sources=(*(Source("seeds", Path(path)) for path in seeds), *_results(Path(out))),
        created_at=options.created_at,
        options=options.for_engine(),
    )


def take_results(seeds: Sequence[Path | str], out: Path | str, options: SuiteOptions) -> None:
    """Put results into a run folder; a run that is not there yet is built without them first.

    Raises:
        FabulaError: as :func:`fabula.builders.events.building.build_suite`.
    """
    folder = Path(out)
    if not (folder / MANIFEST).is_file():
        execute(suite_request(seeds, folder, options))
    else:
        check_sources(suite_request(seeds, folder, options))
    write_results(folder, options.results or {}, options.people)


def _results(folder: Path) -> tuple[Source, ...]:
    """Return the results that lie in the run folder, if there are any."""
    path = folder / RESULTS
    return (Source("results", path),) if path.is_file() else ()
