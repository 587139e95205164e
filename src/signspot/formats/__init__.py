"""Files that somebody else defined, to and from domain types."""
