"""The first two parts of a study: the pictures of every method, and the judgements on them."""

from pathlib import Path

from ...engine.run_options import setting_texts
from ...evaluation.katha.requests import STAGE_OF, EvaluateOptions, evaluate_katha
from ...schemas.canonical import Json
from ..pictures.pipeline import GenerateOptions, generate, place_outputs
from ..pictures.plans import ORDERS, write_orders
from .desk import Desk
from .study import EVALUATION, GENERATION, OUTPUTS, TRUTH, orders_of


def order_pictures(desk: Desk) -> Path:
    """Write the orders of a study; return the file."""
    path = desk.folder / ORDERS
    desk.folder.mkdir(parents=True, exist_ok=True)
    write_orders(path, orders_of(desk.study, desk.release).orders)
    return path


def make_pictures(desk: Desk) -> dict[str, Path]:
    """Have every picture of a study made that is not there yet; return method -> its folder of outputs."""
    run = desk.folder / GENERATION
    options = GenerateOptions(**desk.run_options(run), replace_sources=True)
    generate(order_pictures(desk), run, options, desk.reporter)
    return place_outputs(run, desk.folder / OUTPUTS, desk.folder / TRUTH, _about(desk))


def _about(desk: Desk) -> dict[str, dict[str, Json]]:
    """Return method -> what its ``outputs.json`` says besides: the seeds that were ordered."""
    about = {}
    for method, (_, name) in desk.study.methods().items():
        renderer = desk.study.renderers[name]
        about[method] = {"seeds": sorted(desk.study.seeds)} if renderer.seeded else {}
    return about


def judge_methods(desk: Desk, methods: dict[str, Path]) -> Path:
    """Have the outputs of all methods judged; return the evaluation folder.

    Text-only questions are asked once for all methods.
    """
    out = desk.folder / EVALUATION
    chosen = [folder for method, folder in methods.items() if method in desk.study.methods()]
    evaluate_katha(desk.release.path, chosen, out, judging_options(desk, out), reporter=desk.reporter)
    return out


def judging_options(desk: Desk, out: Path) -> EvaluateOptions:
    """Return how the stories of a study are judged, whatever is judged."""
    given = desk.run_options(out)
    unasked = [f"{stage}.judges=[]" for name, stage in STAGE_OF.items() if name not in desk.study.conditions]
    return EvaluateOptions(
        **{**given, "settings": [*setting_texts(given["settings"]), *unasked]},
        judges=desk.study.judges,
        matcher=desk.study.match_with or None,
        stories=desk.reported,
        prompts=desk.study.prompts,
        replace_sources=True,
    )
