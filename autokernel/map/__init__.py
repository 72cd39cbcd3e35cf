"""The search for the maximum of a log posterior."""
