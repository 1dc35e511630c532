"""Which stories become records, and in which split (section C.3, Tables 6, 12 and 24)."""
