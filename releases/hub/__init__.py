"""A Hub of data sets: publishing a release there, and fetching one."""
