"""Runs A2A agents on AWS Lambda."""
