"""Media and models in, tracks out."""
