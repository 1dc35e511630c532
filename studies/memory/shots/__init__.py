"""From a bank of entities to what a generator gets for each shot: layouts, keyframes, packets, videos."""
