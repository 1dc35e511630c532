"""Provider batches: many requests to a model together, answered within a day at a lower price."""
