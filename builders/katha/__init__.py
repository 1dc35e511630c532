"""The KathaBench builder: stories in, a run of drafted records out."""
