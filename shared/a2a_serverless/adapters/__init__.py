"""The ports on AWS, on the network and in memory."""
