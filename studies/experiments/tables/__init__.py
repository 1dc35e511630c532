"""The tables of the KathaTrace paper from the results of a study, and its page."""
