"""Run an agent on AWS Lambda and talk A2A to it."""
