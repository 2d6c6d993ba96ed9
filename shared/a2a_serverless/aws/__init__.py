"""The parts of the Lambda functions: clients and stores by settings, batches of events, the start of a process."""
