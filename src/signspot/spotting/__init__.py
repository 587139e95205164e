"""Tracks and entries in, spottings out; numpy only."""
