"""The steps from one version of the tables to the next; each file is one version."""
