"""What is done with runs that are finished: archives, smaller journals."""
