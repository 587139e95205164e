"""Recordings become vectors here; nothing outside asks what a model sees."""
