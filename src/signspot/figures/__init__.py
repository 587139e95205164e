"""Pictures for people: curves, overlays, sheets of clips, evaluations."""
