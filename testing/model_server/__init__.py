"""A scripted model server for tests; see :mod:`.server`."""
