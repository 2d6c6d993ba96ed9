"""What operators do with a deployed stack, with their own AWS credentials."""
