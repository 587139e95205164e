"""Signing with known truth: who signed what, when and in which variant."""
