"""Guard models: how each family is asked, and how its answers are read."""
