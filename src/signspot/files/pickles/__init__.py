"""The one door for old pickles; nothing that comes through it can run."""
