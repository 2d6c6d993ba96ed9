"""What runs elsewhere than in the functions: a whole deployment in one process, and an operator's commands."""
