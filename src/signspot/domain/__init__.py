"""What travels: the types every layer exchanges. Standard library and numpy only; no files, no torch."""
