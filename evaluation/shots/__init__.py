"""Generated shot images: finding and checking them, the stages that look at them, and their scores."""
