"""The real template on one machine, without Docker or an AWS account: emulator, `sam build`, `sam deploy`, servers.

Development tooling: it starts programs and reads their output, knows nothing of tasks, and is not part of a function's
zip. `local_stack.up` does all of it; the other modules are its steps:

paths -> processes -> emulator -> sam (its build uses packaging) -> servers -> local_stack; all use errors and progress.
"""
