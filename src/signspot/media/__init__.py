"""Pixels in and out: reading video by its true timestamps, writing overlay video, shaping frames."""
