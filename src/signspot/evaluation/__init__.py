"""Compares with truth: rankings, localisation, overlap, protocols. Pure functions on arrays."""
