"""Language models, detectors and encoders: protocols, and adapters that load their library on first use."""
