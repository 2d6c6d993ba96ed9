"""Tasks, webhooks, owners, values, API keys and public documents, as items of a table."""
