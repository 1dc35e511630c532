"""Counts of ``fabula stats`` as tables."""

from fabula.cli.stats import Counted
from fabula.evaluation.report.formats import written

DOCUMENT = {
    "kind": "events",
    "totals": {"stories": 1200, "scenes": 5},
    "public": {"stories": 1, "scenes": 5},
    "splits": {"train": 1, "test": 0},
    "types": {"moral": {"count": 3, "share": 0.75, "target_share": 0.5}, "none": {"count": 1, "share": 0.25}},
    "review": {"status": {"drafted": {"count": 4}}, "by_producer": {"author": {"drafted": 4}}},
    "languages": {},
    "characters": {"names": ["一", "b"]},
}


def test_counts_when_shown_as_text_stand_in_tables_with_columns_in_line() -> None:
    assert list(Counted(DOCUMENT).lines()) == [
        "Counts", "         Value", "  kind  events", "",
        "Totals, public", "          Stories  Scenes", "  totals    1,200       5",
        "  public        1       5", "",
        "Splits", "                             Value", "  train                          1",
        "  public_test + hidden_test      0", "",
        "Types", "         Count   Share  Target share", "  moral      3  75.0 %        50.0 %",
        "  none       1  25.0 %             –", "",
        "Review: status", "           Count", "  drafted      4", "",
        "Review: by producer", "          Drafted", "  author        4", "",
        "Characters", "         Value", "  names  一, b",
    ]  # fmt: skip


def test_counts_when_written_as_csv_keep_every_number_and_its_names() -> None:
    rows = [
        row.split(",")[:4] for row in written(Counted(DOCUMENT).tables(for_people=False), "csv").splitlines()
    ]
    assert ["types", "moral", "target_share", "0.5"] in rows
    assert ["review.by_producer", "author", "drafted", "4"] in rows
    assert sum(len(row) > 3 for row in rows) == 1 + 1 + 4 + 2 + 5 + 1 + 1 + 1
