"""Types, vocabularies and the JSON Schemas generated from them. Import what you need from its modules."""
