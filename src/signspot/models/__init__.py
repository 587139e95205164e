"""The networks, and other ways to turn a clip into a vector."""
