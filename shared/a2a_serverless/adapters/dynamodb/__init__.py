"""The adapters that keep tasks, webhooks, owners, API keys and public documents in DynamoDB."""
