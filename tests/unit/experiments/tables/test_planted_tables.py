"""The table of planted losses, first on the page: from evaluations of changed storyboards, by evaluator."""

import json
import shutil
from dataclasses import replace

import pytest

from fabula.evaluation.recoverability.definitions import Definitions
from fabula.experiments.tables.page import render_study, study_page
from fabula.experiments.tables.registry import make_tables
from fabula.experiments.tables.results import read_results
from fabula.testing.simulated_evaluations import write_simulated

FEW = Definitions(resamples=200)
METHOD = "direct+plain"


@pytest.fixture
def planted(small, cells, tmp_path):
    """Return a study with planted losses: causal answers are lost in one copy, nothing in the other."""
    study = small(2)
    whole = replace(cells["direct", "plain"], text=(1.0,) * 6, image=(1.0,) * 6, ambiguous=0.0, spread=0.0)
    lost = replace(whole, image=(1.0, 0.0, 1.0, 1.0, 1.0, 1.0))
    (tmp_path / "changed").mkdir()
    simulated = write_simulated(
        tmp_path / "changed", 48, [(f"{METHOD}-none", whole), (f"{METHOD}-swap", lost)], seed=3
    )
    folder = study.folder / "planted"
    (folder / "storyboards").mkdir(parents=True)
    shutil.copytree(simulated.run, folder / "katha")
    manifest = folder / "katha" / "evaluation.json"
    document = json.loads(manifest.read_bytes())
    document["environment"]["sources"] = [{"role": "release", "path": str(simulated.release)}]
    manifest.write_text(json.dumps(document))
    rows = [
        {
            "story_id": record.story_id, "seed": None, "loss": loss, "panels": [2] if loss == "swap" else [],
            "transition": 1 if loss == "swap" else None, "dimensions": ["causal"] if loss == "swap" else [],
            "method": f"{METHOD}-{loss}",
        }
        for record in simulated.items.records
        for loss in ("none", "swap")
    ]  # fmt: skip
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "storyboards" / "plants.jsonl").write_text(lines)
    return study.folder


def test_planted_losses_when_a_judge_sees_them_all_localise_perfectly(planted):
    made = make_tables(read_results(planted, FEW))
    (row,) = made.tables["planted_losses"].rows
    assert row.scores["localisation"].value == 1.0
    # One of six dimensions was hit in each of eight stories.
    assert row.scores["localisation_chance"].value == pytest.approx(1 / 6)
    assert row.scores["sensitivity"].value == 1.0
    assert row.note.startswith("8 changed storyboards and 0 unchanged, of 8 stories")
    (swap,) = made.tables["planted_by_loss"].rows
    assert swap.label.startswith("Swap · ")


def test_page_when_losses_were_planted_shows_their_table_and_plot_first(planted):
    results = read_results(planted, FEW)
    page = study_page(results, make_tables(results))
    first = page.sections[0]
    assert (first.name, first.tables[0][1].name) == ("planted", "planted_losses")
    assert [plot.name for plot in first.plots] == ["planted"]
    text = render_study(page)
    assert text.index("<table") < text.index('<svg class="plot"')  # the table itself comes first
    assert text.index("Evaluators measured by planted losses") < text.index("Leaderboard (after Table 52)")
