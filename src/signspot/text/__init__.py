"""Subtitles and words: reading subtitle files, and finding vocabulary words in their text."""
