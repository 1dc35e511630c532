"""The shot-script builder: stories in, scripts in the official ViStoryBench tree out."""
