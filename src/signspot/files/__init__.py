"""Bytes of any file, safely, whatever they mean: written whole or not at all, read within bounds."""
