"""The one HTTP client, for all requests but webhooks: a deadline over the whole exchange, no redirects."""
