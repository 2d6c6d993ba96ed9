"""The real template on one machine, without Docker or an AWS account: emulator, `sam build`, `sam deploy`, servers.

Development tooling: it starts programs and reads their answers, knows nothing of tasks, and stays out of the wheel and
so out of every function's zip. `session.up` is the whole way; the other modules are its steps:

places -> processes -> emulator -> sam (packaging inside its build) -> servers -> session; errors and progress for all.
"""
