"""Antiphon: a chat server of supervised Trio actors in front of an in-flight-batching engine."""

__version__ = "0.1.0"
