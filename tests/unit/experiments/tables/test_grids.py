"""Which stories a page shows: rules as data, worked by hand; invalid and ambiguous cases are not used."""

import numpy as np
import pytest

from fabula.experiments.tables.grids import COMPASS_RULES, RULES, Facts, Rule, chosen_stories, facts_of
from fabula.experiments.tables.results import read_results

CELLS = {"a+x": ("a", "x"), "b+x": ("b", "x"), "a+y": ("a", "y"), "b+y": ("b", "y")}


def facts(gaps, usable=None, methods=tuple(CELLS), dimensions=None):
    """Facts of made-up gaps, shape (methods, stories)."""
    table = np.array(gaps, dtype=np.float64)
    stories = table.shape[1]
    return Facts(
        methods, CELLS, (42,) * stories, np.ones(stories, dtype=bool) if usable is None else np.array(usable),
        table, 1 - table, np.zeros((*table.shape, 6)) if dimensions is None else dimensions,
    )  # fmt: skip


def rule(name):
    return next(each for each in (*RULES, *COMPASS_RULES) if each.name == name)


def test_rules_when_gaps_are_known_choose_highest_lowest_and_median():
    # Means over the four methods: 0.1, 0.2, 0.5, 0.9, 0.3; the median of the five is 0.3.
    some = facts([[0.1, 0.2, 0.5, 0.9, 0.3]] * 4)
    assert [rule(name).choose(some, []) for name in ("high_collapse", "typical", "low_collapse")] == [3, 4, 0]
    # A story is shown once: the next best is taken.
    assert rule("high_collapse").choose(some, [3]) == 2


def test_rules_when_a_story_is_not_usable_never_choose_it():
    some = facts([[0.1, 0.2, 0.5, 0.9]] * 4, usable=[True, True, True, False])
    assert rule("high_collapse").choose(some, []) == 2
    assert rule("high_collapse").choose(facts([[0.1]] * 4, usable=[False]), []) is None


def test_spread_when_plans_and_renderers_differ_is_that_of_their_means():
    # a+x, b+x, a+y, b+y: plan a 0.2 and 0.4, b 0.6 and 0.8: means 0.3 and 0.7, plans differ by 0.4;
    # renderer x 0.2 and 0.6, y 0.4 and 0.8: means 0.4 and 0.6, renderers differ by 0.2.
    some = facts([[0.2], [0.6], [0.4], [0.8]])
    assert some.spread(0) == pytest.approx([0.4])
    assert some.spread(1) == pytest.approx([0.2])
    assert np.isnan(facts([[0.2], [0.6]], methods=("a+x", "b+x")).spread(1)).all()


def test_repair_rules_when_arms_are_known_choose_where_it_helps_most_and_least():
    some = facts([[0.5, 0.5, 0.5], [0.1, 0.5, 0.7]], methods=("first-seed", "full"))
    assert [(each.rule.name, each.story) for each in chosen_stories(some, COMPASS_RULES)] == [
        ("repair", 0), ("repair_boundary", 2),
    ]  # fmt: skip
    assert chosen_stories(facts([[0.5]] * 4), COMPASS_RULES) == ()


def test_dimension_rules_when_one_is_lost_most_choose_that_story():
    dimensions = np.zeros((4, 3, 6))
    dimensions[:, 1, 1] = 0.8  # causal, in the second story
    some = facts([[0.1, 0.2, 0.3]] * 4, dimensions=dimensions)
    assert rule("dimension_causal").choose(some, []) == 1


def test_chosen_when_stories_are_alike_take_the_earlier_one_and_none_twice():
    some = facts([[0.5, 0.5]] * 4)
    chosen = chosen_stories(some, (rule("high_collapse"), rule("low_collapse"), rule("typical")))
    assert [each.story for each in chosen] == [0, 1]


def test_rules_when_read_have_names_of_their_own_and_say_why():
    every = (*RULES, *COMPASS_RULES)
    assert len({each.name for each in every}) == len(every)
    assert all(isinstance(each, Rule) and each.why and each.label for each in every)


def test_facts_when_generations_failed_show_the_first_seed_that_all_have(small, closed):
    study = small(
        3, seeds=(42, 123), unseeded=("fine",), renderers={"fine": closed},
        failed=(
            ("direct+plain", "kb25k_0001", 42),  # so the second seed is shown
            ("direct+plain", "kb25k_0002", 42), ("transition-aware+plain", "kb25k_0002", 123),  # none shared
            ("direct+fine", "kb25k_0003", None),  # the closed system has none
        ),
    )  # fmt: skip
    results = read_results(study.folder)
    judged = results.evaluation
    made = facts_of(list(judged.methods), judged.items, judged.replies.seeds, results.cells)
    assert made.seeds == (123, None, 42)
    assert made.usable.tolist() == [True, False, False]


def test_facts_when_most_questions_are_ambiguous_leave_the_story_out(small, cells):
    from dataclasses import replace

    truth = replace(cells["direct", "plain"], ambiguous=1.0)
    results = read_results(small(2, cells={("direct", "plain"): truth}).folder)
    judged = results.evaluation
    made = facts_of(list(judged.methods), judged.items, judged.replies.seeds, results.cells)
    assert not made.usable.any()
