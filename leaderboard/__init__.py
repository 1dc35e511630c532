"""Leaderboards: folders of submissions that are checked, scored again, ranked and shown."""
