"""Trains and measures what `antiphon.classifier` ships. Not part of the package."""
