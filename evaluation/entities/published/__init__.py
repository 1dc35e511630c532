"""The public evaluator's results, scored like our own."""
