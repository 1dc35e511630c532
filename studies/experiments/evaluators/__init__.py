"""Evaluators that KathaTrace is compared with (its Tables 3 and 54), and ablations of its own."""
