"""The sample agents of this project. They are registered by their import paths, like any other agent."""
