"""Statistics that several protocols share: intervals, tests, effect sizes, agreement."""
