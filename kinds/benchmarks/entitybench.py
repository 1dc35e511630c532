"""EntityBench: episodes with a schedule of entities for each shot."""

from pathlib import Path

from .benchmark import Benchmark, Home, Licence, Orders, PerCall, Printed, known_files

COLUMNS = {
    **{f"{short}_presence": f"intra_{long}_presence"
       for short, long in (("char", "character"), ("obj", "object"), ("loc", "location"))},
    **{f"{kind}_fidelity": f"intra_{kind}_fidelity" for kind in ("face", "object", "location")},
    "action_overall": "intra_action_overall", "action_subject": "intra_action_subject_identity",
    "action_interaction": "intra_action_object_interaction",
}  # fmt: skip
"""Column of Table 4 -> our metric, where it has another name."""


def _set(data: Path, made: Path, model: str | None) -> Path:  # noqa: ARG001 - as every benchmark has it
    from ...releases.entities.form import import_episodes

    import_episodes(data / "data", made)
    return made


def _orders(folder: Path, out: Path, form: str | None) -> Orders:
    from ...releases.entities.requests import RequestOptions, result_name, write_requests
    from ...releases.entities.tree import read_entity_set

    entity_set, _ = read_entity_set(folder, rules=False)
    counts = write_requests(entity_set, out, RequestOptions(per=form or "shot"))
    expected = tuple(
        result_name(episode.episode_id, shot)
        for episode in entity_set.episodes
        for shot in episode.script.shots()
    )
    return Orders(out, {"episodes": len(entity_set.episodes), "shots": counts["shots"]}, expected)


ENTITYBENCH = Benchmark(
    name="entitybench",
    title="EntityBench",
    about="Do characters, objects and places stay the same over the shots of a generated episode?",
    paper="EntityBench: Towards Entity-Consistent Long-Range Multi-Shot Video Generation. "
    "https://arxiv.org/abs/2605.15199",
    homepage="https://catherine-r-he.github.io/EntityBench/",
    licence=Licence("", "The repository has no licence: its authors did not allow any use.", asks=True),
    home=Home(
        "repository", "https://github.com/Catherine-R-He/EntityBench", "3776439", known_files("entitybench")
    ),
    noun="episodes",
    protocol="entitybench@3776439",
    prompts="entitybench",
    metrics=("pillar-1-vbench", "pillar-2", "pillar-3"),
    judges=("Gemini 2.5 Pro",),
    judge="google:gemini-2.5-pro",
    per_call=PerCall(pictures=2, tokens=700, reply=600),
    layout="EPISODE/SCENE_SHOT.mp4, such as EPISODE/001_002.mp4; or EPISODE.mp4 with all shots",
    counted=("episodes_requested", "episodes_complete", "episodes"),
    libraries={"torch": "metrics", "transformers": "metrics", "av": "video"},
    size={"episodes": 140, "shots": 2491, "seconds of the source": 41160},
    prepare=_set,
    orders=_orders,
    forms=("shot", "episode"),
    printed=(
        Printed(
            "entitybench", "Gemini 2.5 Pro", "the public evaluator; means corrected by the fidelity gate",
            COLUMNS, (r"gemini-2\.5-pro",),
        ),
    ),
    untried=(
        "the download from the repository: its files were read from a copy at the pinned commit",
        "motion smoothness, which VBench measures with a network (AMT-S) that Fabula does not run: "
        "fabula import vbench-results takes VBench's own value",
        "the real weights of the metrics, which were tried with tiny ones of the same classes",
        "any real judge",
    ),
)  # fmt: skip
"""The benchmark."""
