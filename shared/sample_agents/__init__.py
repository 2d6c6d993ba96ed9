"""The agents that this project ships: samples, registered as anybody's agents are, by their import paths."""
