"""Files of ours: dictionaries, corpora, findings, vectors, calibrations."""
