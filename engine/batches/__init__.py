"""Requests that go to a service together, as batches: written down, sent, looked after and settled."""
