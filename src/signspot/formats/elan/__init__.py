"""ELAN annotation files: read as a document, edited without losing anything."""
