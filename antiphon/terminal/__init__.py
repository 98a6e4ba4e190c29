"""Chatting in a terminal with a running server, over its public API alone: it shares nothing with
the server but the errors, and is an example of a client."""
