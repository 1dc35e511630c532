"""Metrics of generated shot images: pure functions over detections, embeddings and replies, one file each."""
