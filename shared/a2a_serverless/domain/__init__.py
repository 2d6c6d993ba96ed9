"""Pure domain logic: no clock, no environment, no network, and no random ids."""
