"""The commands: projects, the local stack, the development server, operators. Functions have none of this."""
