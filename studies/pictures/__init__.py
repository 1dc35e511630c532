"""Pictures from plans: what a generator is shown of a story, and the run that asks for every picture."""
