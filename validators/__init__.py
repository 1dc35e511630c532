"""What a data set must satisfy: schemas, rules with stable codes, statistics."""
