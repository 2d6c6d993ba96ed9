"""The parts that Lambda functions share: clients and stores by settings, batches of events, the start of a process."""
