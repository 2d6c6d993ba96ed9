"""The pure core: it knows no clock, no environment, no network and no ids that it made itself."""
