"""``drawn``: a generator of ours that needs no weights, for trying the whole path offline."""
