"""The search of the maximum of a log posterior."""
