"""Answers, ratings and preferences of people, and how judges agree with them."""
