"""KathaTrace: recoverability and the Semantic Trajectory Gap from archived replies."""
