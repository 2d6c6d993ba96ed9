"""The project's own stack on one machine: emulator, build, deploy, servers. Never part of a function's zip."""
