"""Simple generators that show what metrics do; what each of them is, its file says."""
