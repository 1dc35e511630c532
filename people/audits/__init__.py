"""How good drafts are: compared with gold records, answered blindly by a model, read by people."""
