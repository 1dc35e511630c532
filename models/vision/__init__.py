"""Models that look at pictures, behind protocols: detectors, encoders, predictors; and a store of vectors."""
