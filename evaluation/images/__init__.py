"""Generated shot images: finding and checking them, and the stages that make what metrics need."""
