"""The one HTTP client, for everything but webhooks: a deadline over the whole exchange, no redirects."""
