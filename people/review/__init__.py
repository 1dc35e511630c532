"""Review and studies by people: protocol, assignments, votes, adjudication, results."""
