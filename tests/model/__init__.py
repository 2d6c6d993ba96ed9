"""Models: every order in which a few actors' store calls can happen, explored over the library's own code."""
