"""What KathaBench records must satisfy: rules about one story, and about a set of them."""
