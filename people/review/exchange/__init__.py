"""A seat's items for other tools, and the answers that come back from them."""
