"""Files that others defined: ELAN, vocabularies, captions, landmarks, tables of data sets."""
